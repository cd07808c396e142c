#include "compiler/fixes/toml_layout.h"

#include <algorithm>

#include "compiler/fixes/commented_list.h"

namespace capstan {
namespace {

bool any_equal(const Value::List& a, const Value::List& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (a[i] == b[i]) return true;
  }
  return false;
}

}  // namespace

std::string_view indent_of(std::string_view text, const Line& line) {
  std::uint32_t end = line.begin;
  while (end < line.text_end && (text[end] == ' ' || text[end] == '\t')) ++end;
  return text.substr(line.begin, end - line.begin);
}

std::uint32_t skip_blanks(std::string_view text, std::uint32_t at) {
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  return at;
}

Line line_at(std::string_view text, std::uint32_t offset) {
  Line line;
  const std::size_t before = offset == 0 ? std::string_view::npos : text.rfind('\n', offset - 1);
  line.begin = before == std::string_view::npos ? 0 : static_cast<std::uint32_t>(before + 1);
  const std::size_t after = text.find('\n', offset);
  line.end = static_cast<std::uint32_t>(after == std::string_view::npos ? text.size() : after + 1);
  line.text_end = after == std::string_view::npos ? line.end : line.end - 1;
  if (line.text_end > line.begin && text[line.text_end - 1] == '\r') --line.text_end;
  return line;
}

std::string_view line_ending(std::string_view text) {
  const std::size_t at = text.find('\n');
  return at != std::string_view::npos && at > 0 && text[at - 1] == '\r' ? "\r\n" : "\n";
}

std::string write_value(const Value& value, std::string_view model) {
  if (model.starts_with('[') && value.kind() == Value::Kind::string)
    model.remove_prefix(std::min(model.find_first_of("'\""), model.size()));
  if (value.kind() == Value::Kind::string && model.starts_with('\'') && !model.starts_with("'''")) {
    const std::string& text = value.string();
    const bool plain = std::all_of(text.begin(), text.end(), [](char c) {
      return c != '\'' && (c == '\t' || static_cast<unsigned char>(c) >= 0x20);
    });
    if (plain) return "'" + text + "'";
  }
  if (value.kind() == Value::Kind::list) {
    const std::size_t quote = model.find_first_of("'\"");
    const std::string_view element_model =
        quote == std::string_view::npos ? std::string_view() : model.substr(quote);
    std::string out = "[";
    for (const Value& item : value.list()) {
      if (out.size() > 1) out += ", ";
      out += write_value(item, element_model);
    }
    return out + "]";
  }
  return to_text(value);
}

bool is_statement(std::string_view text, const Span& key) {
  const Line line = line_at(text, key.begin);
  return text.substr(line.begin, key.begin - line.begin).find_first_of("{,=") == std::string_view::npos;
}

bool header_names(std::string_view text, const Span& span, const std::string& section) {
  const Line line = line_at(text, span.begin);
  std::string name;
  for (const char c : text.substr(span.begin, line.text_end - span.begin)) {
    if (c == '[' || c == ' ' || c == '\t' || c == '"' || c == '\'') continue;
    if (c == ']') break;
    name += c;
  }
  return name == section;
}

Edit removal_of_entry(std::string_view text, const Span& key, const Span& value, bool keep_comment) {
  if (is_statement(text, key)) {
    const Line first = line_at(text, key.begin);
    const Line last = line_at(text, value.end > value.begin ? value.end - 1 : value.end);
    const std::uint32_t behind = skip_blanks(text, value.end);
    if (keep_comment && behind < last.text_end && text[behind] == '#') {
      const std::string_view indent = indent_of(text, first);
      return {{key.source, first.begin + static_cast<std::uint32_t>(indent.size()), behind}, ""};
    }
    return {{key.source, first.begin, last.end}, ""};
  }
  // In an inline table the comma after the entry goes with it, or for the last entry the one before.
  std::uint32_t begin = key.begin;
  while (begin > 0 && text[begin - 1] != '{' && text[begin - 1] != ',') --begin;
  const std::uint32_t after = skip_blanks(text, value.end);
  if (after < text.size() && text[after] == ',')
    return {{key.source, skip_blanks(text, begin), skip_blanks(text, after + 1)}, ""};
  const bool has_previous = begin > 0 && text[begin - 1] == ',';
  return {{key.source, has_previous ? begin - 1 : begin, value.end}, ""};
}

MovedStatement take_statement(std::string_view text, const Span& key, const Span& value,
                              const std::function<bool(std::uint32_t)>& is_comment) {
  MovedStatement moved;
  moved.removal = removal_of_entry(text, key, value);
  moved.value = text.substr(value.begin, value.end - value.begin);
  moved.equals = " = ";
  if (!is_statement(text, key)) return moved;
  moved.equals = text.substr(key.end, value.begin - key.end);
  const Line last = line_at(text, value.end > value.begin ? value.end - 1 : value.end);
  moved.behind = text.substr(value.end, last.text_end - value.end);
  std::uint32_t begin = moved.removal.span.begin;
  while (begin > 0) {
    const Line line = line_at(text, begin - 1);
    const std::uint32_t at = skip_blanks(text, line.begin);
    if (at >= line.text_end || text[at] != '#' || !is_comment(at)) break;
    if (line.begin == 0) {
      moved.above.clear();
      return moved;
    }
    moved.above.emplace_back(text.substr(at, line.text_end - at));
    begin = line.begin;
  }
  std::reverse(moved.above.begin(), moved.above.end());
  moved.removal.span.begin = begin;
  return moved;
}

std::optional<std::vector<Edit>> list_edits(std::string_view text, const Setting& setting,
                                            const Value::List& wanted) {
  const Value::List& current = setting.value.list();
  const std::vector<Span>& items = setting.items;
  if (items.size() != current.size()) return std::nullopt;
  std::vector<bool> kept(current.size(), false);
  std::size_t next = 0;
  for (std::size_t i = 0; i < current.size() && next < wanted.size(); ++i) {
    if (current[i] == wanted[next]) {
      kept[i] = true;
      ++next;
    }
  }
  // Words written in place of others.
  if (next < wanted.size() && wanted.size() == current.size() && any_equal(current, wanted)) {
    std::vector<Edit> edits;
    for (std::size_t i = 0; i < current.size(); ++i) {
      if (current[i] == wanted[i]) continue;
      const std::string_view model = text.substr(items[i].begin, items[i].end - items[i].begin);
      edits.push_back({items[i], write_value(wanted[i], model)});
    }
    return edits;
  }
  const std::vector<Value> added(wanted.begin() + static_cast<std::ptrdiff_t>(next), wanted.end());
  const bool any_kept = std::find(kept.begin(), kept.end(), true) != kept.end();
  const Span whole = setting.origin.value;
  const std::string_view model = items.empty() ? std::string_view() : text.substr(items[0].begin, 1);
  std::vector<Edit> edits;
  if (current.empty()) {
    std::string inserted;
    for (const Value& value : added) inserted += (inserted.empty() ? "" : ", ") + write_value(value, model);
    if (!inserted.empty()) edits.push_back({{whole.source, whole.begin + 1, whole.begin + 1}, inserted});
    return edits;
  }
  const auto alone_on_line = [&](const Span& item) {
    const Line line = line_at(text, item.begin);
    if (text.substr(line.begin, item.begin - line.begin).find_first_not_of(" \t") != std::string_view::npos)
      return false;
    std::uint32_t after = skip_blanks(text, item.end);
    if (after < text.size() && text[after] == ',') after = skip_blanks(text, after + 1);
    return after >= line.text_end || text[after] == '#';
  };
  const bool by_lines = std::all_of(items.begin(), items.end(), alone_on_line);
  if (!(by_lines && any_kept) && has_comments(text, whole, items))
    return commented_list_edits(text, whole, items, kept, added);
  if (!any_kept) return std::nullopt;
  std::size_t last_kept = items.size();
  while (!kept[last_kept - 1]) --last_kept;
  --last_kept;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (kept[i]) continue;
    if (by_lines) {
      const Line line = line_at(text, items[i].begin);
      edits.push_back({{whole.source, line.begin, line.end}, ""});
    } else if (i < last_kept) {
      edits.push_back({{whole.source, items[i].begin, items[i + 1].begin}, ""});
    }
  }
  if (!by_lines && last_kept + 1 < items.size() && added.empty()) {
    edits.push_back({{whole.source, items[last_kept].end, items.back().end}, ""});
  }
  if (added.empty()) return edits;
  const Span& anchor = items[last_kept];
  const std::uint32_t after = skip_blanks(text, anchor.end);
  const bool comma = after < text.size() && text[after] == ',';
  if (by_lines) {
    const Line line = line_at(text, anchor.begin);
    const std::string lead = std::string(line_ending(text)) + std::string(indent_of(text, line));
    std::string inserted;
    // The layout with a trailing comma is kept as it is: each added line ends with one, too.
    for (const Value& value : added) inserted += lead + write_value(value, model) + ",";
    const bool was_last = last_kept + 1 == items.size();
    if (was_last && !comma) {
      inserted.pop_back();
      edits.push_back({{whole.source, anchor.end, anchor.end}, ","});
    }
    edits.push_back({{whole.source, line.text_end, line.text_end}, inserted});
    return edits;
  }
  std::string inserted;
  for (const Value& value : added) inserted += ", " + write_value(value, model);
  // What is taken away behind the anchor goes in the same edit.
  edits.push_back({{whole.source, anchor.end, items.back().end}, inserted});
  return edits;
}

}  // namespace capstan
