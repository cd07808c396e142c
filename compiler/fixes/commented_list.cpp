#include "compiler/fixes/commented_list.h"

#include <algorithm>
#include <string>

#include "compiler/fixes/toml_layout.h"

namespace capstan {
namespace {

struct Range {
  std::uint32_t begin = 0, end = 0;
};

/// What stands between elements: each element's comma, and the comments.
struct Separators {
  std::vector<std::optional<std::uint32_t>> commas;
  std::vector<Range> comments;
};

Separators find_separators(std::string_view text, const Span& whole, const std::vector<Span>& items) {
  Separators found;
  found.commas.resize(items.size());
  for (std::size_t gap = 0; gap <= items.size(); ++gap) {
    const std::uint32_t end = gap == items.size() ? whole.end - 1 : items[gap].begin;
    for (std::uint32_t at = gap == 0 ? whole.begin + 1 : items[gap - 1].end; at < end; ++at) {
      if (text[at] == ',' && gap > 0) found.commas[gap - 1] = at;
      if (text[at] != '#') continue;
      const Line line = line_at(text, at);
      found.comments.push_back({at, line.text_end});
      at = line.text_end;
    }
  }
  return found;
}

std::uint32_t skip_blanks_back(std::string_view text, std::uint32_t at) {
  while (at > 0 && (text[at - 1] == ' ' || text[at - 1] == '\t')) --at;
  return at;
}

class ListEditor {
 public:
  ListEditor(std::string_view text, const Span& whole, const std::vector<Span>& items,
             const std::vector<bool>& kept)
      : text_(text),
        whole_(whole),
        items_(items),
        kept_(kept),
        separators_(find_separators(text, whole, items)) {}

  std::optional<std::vector<Edit>> run(const Value::List& added) {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      if (!kept_[i]) take_away(i);
    }
    for (const Range& comment : separators_.comments) {
      if (of_removed_only(comment)) gone_.push_back({skip_blanks_back(text_, comment.begin), comment.end});
    }
    const bool any_kept = std::find(kept_.begin(), kept_.end(), true) != kept_.end();
    if (!any_kept && added.empty() && all_comments_gone()) return std::nullopt;
    if (!added.empty()) append(added, any_kept);
    merge_removals();
    return std::move(edits_);
  }

 private:
  bool inside(const Line& line) const { return line.begin > whole_.begin && line.end <= whole_.end - 1; }
  static bool begins_in(const Span& item, const Line& line) {
    return line.begin <= item.begin && item.begin < line.end;
  }
  bool keeps_item_of(const Line& line) const {
    for (std::size_t i = 0; i < items_.size(); ++i) {
      const bool touches = items_[i].begin < line.end && items_[i].end > line.begin;
      if (touches && kept_[i]) return true;
    }
    return false;
  }
  bool of_removed_only(const Range& comment) const {
    const Line line = line_at(text_, comment.begin);
    const bool any = std::any_of(items_.begin(), items_.end(), [&](const Span& item) {
      return item.begin < comment.begin && item.end > line.begin;
    });
    return any && !keeps_item_of(line);
  }
  bool all_comments_gone() const {
    return std::all_of(separators_.comments.begin(), separators_.comments.end(), [&](const Range& comment) {
      return std::any_of(gone_.begin(), gone_.end(), [&](const Range& range) {
        return range.begin <= comment.begin && comment.end <= range.end;
      });
    });
  }

  void take_away(std::size_t i) {
    const Span& item = items_[i];
    const Line line = line_at(text_, item.begin);
    const auto comma = separators_.commas[i];
    if (comma) gone_.push_back({*comma, *comma + 1});
    if (inside(line) && item.end <= line.text_end && !keeps_item_of(line)) {
      gone_.push_back({line.begin, line.end});
      return;
    }
    Range range = {item.begin, item.end};
    if (comma && skip_blanks(text_, item.end) == *comma) range.end = *comma + 1;
    const std::uint32_t next = skip_blanks(text_, range.end);
    const bool item_follows = i + 1 < items_.size() && items_[i + 1].begin == next;
    if (item_follows)
      range.end = next;
    else
      range.begin = std::max(skip_blanks_back(text_, item.begin), whole_.begin + 1);
    gone_.push_back(range);
  }

  void append(const Value::List& added, bool any_kept) {
    const std::string_view model = text_.substr(items_[0].begin, items_[0].end - items_[0].begin);
    const auto insert = [&](std::uint32_t at, std::string what) {
      edits_.push_back({{whole_.source, at, at}, std::move(what)});
    };
    if (!any_kept) {
      const Line line = line_at(text_, items_[0].begin);
      const bool own_line = inside(line);
      std::string written;
      for (const Value& value : added) {
        if (own_line)
          written += std::string(indent_of(text_, line)) + write_value(value, model) + "," +
                     std::string(line_ending(text_));
        else
          written += (written.empty() ? "" : " ") + write_value(value, model) + ",";
      }
      insert(own_line ? line.begin : whole_.begin + 1, std::move(written));
      return;
    }
    std::size_t last = items_.size();
    while (!kept_[last - 1]) --last;
    const Span& anchor = items_[--last];
    // A comma below a comment would stand behind what is inserted before it.
    auto& comma = separators_.commas[last];
    if (comma && skip_blanks(text_, anchor.end) != *comma) {
      gone_.push_back({*comma, *comma + 1});
      comma.reset();
    }
    std::string written;
    for (const Value& value : added)
      written += comma ? " " + write_value(value, model) + "," : ", " + write_value(value, model);
    insert(comma ? *comma + 1 : anchor.end, std::move(written));
  }

  void merge_removals() {
    std::sort(gone_.begin(), gone_.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& range : gone_) {
      if (!merged.empty() && range.begin <= merged.back().end)
        merged.back().end = std::max(merged.back().end, range.end);
      else
        merged.push_back(range);
    }
    for (const Range& range : merged) edits_.push_back({{whole_.source, range.begin, range.end}, ""});
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
  }

  std::string_view text_;
  const Span& whole_;
  const std::vector<Span>& items_;
  const std::vector<bool>& kept_;
  Separators separators_;
  std::vector<Range> gone_;
  std::vector<Edit> edits_;
};

}  // namespace

bool has_comments(std::string_view text, const Span& whole, const std::vector<Span>& items) {
  return !find_separators(text, whole, items).comments.empty();
}

std::optional<std::vector<Edit>> commented_list_edits(std::string_view text, const Span& whole,
                                                      const std::vector<Span>& items,
                                                      const std::vector<bool>& kept,
                                                      const Value::List& added) {
  return ListEditor(text, whole, items, kept).run(added);
}

}  // namespace capstan
