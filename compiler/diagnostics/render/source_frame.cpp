#include "compiler/diagnostics/render/source_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "compiler/diagnostics/render/display_text.h"

namespace capstan {
namespace {

constexpr std::uint32_t kMaxLineWidth = 140;   // character cells shown of one source line
constexpr std::uint32_t kMaxCells = 1u << 13;  // cells looked at of one source line
constexpr std::uint32_t kBefore = 1u << 11;    // bytes looked at before the first label of a long line

/// A label on one line, as a half-open range of character cells.
struct Mark {
  std::uint32_t begin = 0, end = 0;
  bool primary = false;
  std::string text;
};

/// The visible part of a line.
struct Window {
  std::string text;
  std::vector<Mark> marks;
};

struct LineLabel {
  std::uint32_t begin, end;  // bytes within the line
  const Label* label;
  std::uint32_t last_line;  // 0: ends on this line
};

/// Lets go what stands far before the first label: a line may have megabytes. `labels` are sorted.
std::string_view without_far_prefix(std::string_view line, std::vector<LineLabel>& labels) {
  if (labels.empty() || labels.front().begin <= kBefore) return line;
  std::uint32_t start = labels.front().begin - kBefore;
  while (start < labels.front().begin && (static_cast<unsigned char>(line[start]) & 0xC0) == 0x80) ++start;
  for (LineLabel& label : labels) {
    label.begin -= start;
    label.end -= start;
  }
  return line.substr(start);
}

/// The 1-based line of an offset, without the way along the line that its column takes.
std::uint32_t line_of(const SourceFile& file, std::uint32_t offset) {
  std::uint32_t low = 1, high = file.line_count();  // line_of is in [low, high]
  while (low < high) {
    const std::uint32_t middle = low + (high - low + 1) / 2;
    if (file.offset_of({middle, 1}) <= offset)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/// Cuts the line to the screen, around the first label, and converts byte ranges to cells.
Window cut(std::string_view line, const std::vector<LineLabel>& labels) {
  const std::vector<DisplayCell> cells = display_cells(line, kMaxCells);
  std::vector<std::uint32_t> starts(cells.size() + 1, 0);
  for (std::size_t i = 0; i < cells.size(); ++i) starts[i + 1] = starts[i] + cells[i].width;
  const auto cell_at = [&](std::uint32_t byte) {
    const auto found =
        std::lower_bound(cells.begin(), cells.end(), byte,
                         [](const DisplayCell& cell, std::uint32_t wanted) { return cell.begin < wanted; });
    return static_cast<std::size_t>(found - cells.begin());
  };
  const std::uint32_t total = starts.back();
  std::uint32_t from = 0;
  if (total > kMaxLineWidth && !labels.empty()) {
    const std::uint32_t first = starts[cell_at(labels.front().begin)];
    if (first > kMaxLineWidth / 2) from = std::min(first - kMaxLineWidth / 3, total - kMaxLineWidth);
  }
  const std::uint32_t to = from + kMaxLineWidth;
  Window window;
  std::uint32_t lead = 0;
  if (from > 0) window.text = "… ", lead = 2;
  std::uint32_t shown_from = total;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (starts[i] < from || starts[i + 1] > to) continue;
    shown_from = std::min(shown_from, starts[i]);
    window.text += cells[i].text;
  }
  shown_from = std::min(shown_from, from + kMaxLineWidth);
  if (total > to || (!cells.empty() && cells.back().begin + 4 < line.size() && total >= kMaxCells))
    window.text += " …";
  for (const LineLabel& entry : labels) {
    std::uint32_t begin = starts[cell_at(entry.begin)];
    std::uint32_t end = std::max(starts[cell_at(entry.end)], begin + 1);
    std::string text = safe_text(entry.label->text);
    if (entry.last_line != 0) {
      text += fmt::format("{}(goes on to line {})", text.empty() ? "" : " ", entry.last_line);
    }
    begin = std::clamp(begin, shown_from, to) - shown_from + lead;
    end = std::clamp(end, shown_from + 1, to + 1) - shown_from + lead;
    window.marks.push_back({begin, std::max(end, begin + 1), entry.label->primary, std::move(text)});
  }
  while (!window.text.empty() && window.text.back() == ' ') window.text.pop_back();
  return window;
}

/// One row under a line: characters by cell, each with its paint.
class Row {
 public:
  void put(std::uint32_t column, char c, const std::string& paint) {
    grow(column + 1);
    if (cells_[column] == ' ' || c == '^') cells_[column] = c, paints_[column] = &paint;
  }
  void write(std::uint32_t column, const std::string& text, const std::string& paint) {
    tail_column_ = column;
    tail_ = text;
    tail_paint_ = &paint;
  }
  std::string finish(const std::string& reset) const {
    std::string out;
    const std::string* active = nullptr;
    const auto switch_to = [&](const std::string* paint) {
      if (paint == active) return;
      if (active != nullptr && !active->empty()) out += reset;
      if (paint != nullptr) out += *paint;
      active = paint;
    };
    std::uint32_t column = 0;
    for (; column < cells_.size(); ++column) {
      if (!tail_.empty() && column >= tail_column_) break;
      switch_to(cells_[column] == ' ' ? nullptr : paints_[column]);
      out += cells_[column];
    }
    if (!tail_.empty()) {
      switch_to(nullptr);
      out += std::string(tail_column_ > column ? tail_column_ - column : 0, ' ');
      switch_to(tail_paint_);
      out += tail_;
    }
    switch_to(nullptr);
    while (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
  }

 private:
  void grow(std::uint32_t size) {
    if (cells_.size() < size) cells_.resize(size, ' '), paints_.resize(size, nullptr);
  }
  std::string cells_;
  std::vector<const std::string*> paints_;
  std::string tail_;
  std::uint32_t tail_column_ = 0;
  const std::string* tail_paint_ = nullptr;
};

/// Marker rows of one line: markers with the rightmost text behind them, then the other texts, right to left.
std::vector<std::string> marker_rows(std::vector<Mark> marks, const FramePaint& paint) {
  std::stable_sort(marks.begin(), marks.end(),
                   [](const Mark& a, const Mark& b) { return a.begin < b.begin; });
  const auto paint_of = [&](const Mark& mark) -> const std::string& {
    return mark.primary ? paint.primary : paint.secondary;
  };
  Row first;
  std::uint32_t end = 0;
  for (const Mark& mark : marks) {
    for (std::uint32_t column = mark.begin; column < mark.end; ++column) {
      first.put(column, mark.primary ? '^' : '-', paint_of(mark));
    }
    end = std::max(end, mark.end);
  }
  std::vector<const Mark*> hanging;
  for (const Mark& mark : marks) {
    if (!mark.text.empty()) hanging.push_back(&mark);
  }
  if (!hanging.empty() && hanging.back()->end == end) {
    first.write(end + 1, hanging.back()->text, paint_of(*hanging.back()));
    hanging.pop_back();
  }
  std::vector<std::string> rows{first.finish(paint.reset)};
  while (!hanging.empty()) {
    Row bars, text;
    for (const Mark* mark : hanging) bars.put(mark->begin, '|', paint_of(*mark));
    const Mark& last = *hanging.back();
    hanging.pop_back();
    for (const Mark* mark : hanging) {
      if (mark->begin < last.begin) text.put(mark->begin, '|', paint_of(*mark));
    }
    text.write(last.begin, last.text, paint_of(last));
    rows.push_back(bars.finish(paint.reset));
    rows.push_back(text.finish(paint.reset));
  }
  return rows;
}

std::uint32_t digits(std::uint32_t number) {
  return static_cast<std::uint32_t>(std::to_string(number).size());
}

/// A line of the source behind its number (which may be empty) and a sign.
std::string numbered_line(const std::string& number, char sign, std::string_view text, std::uint32_t gutter,
                          const FramePaint& paint) {
  return fmt::format("{}{:>{}} {}{}{}{}\n", paint.gutter, number, gutter, sign, paint.reset,
                     text.empty() ? "" : " ", text);
}

}  // namespace

std::uint32_t gutter_width(const std::vector<Label>& labels, const SourceMap& sources) {
  std::uint32_t width = 1;
  for (const Label& label : labels) {
    if (label.span.exists())
      width = std::max(width, digits(line_of(sources[label.span.source], label.span.begin)));
  }
  return width;
}

std::string source_frame(const std::vector<Label>& labels, const SourceMap& sources, std::uint32_t gutter,
                         const FramePaint& paint) {
  std::vector<SourceId> order;  // the primary label's source first, then as labelled
  for (const bool primary : {true, false}) {
    for (const Label& label : labels) {
      if (label.primary != primary && primary) continue;
      if (std::find(order.begin(), order.end(), label.span.source) == order.end())
        order.push_back(label.span.source);
    }
  }
  const std::string pad(gutter, ' ');
  const std::string bar = pad + " " + paint.gutter + "|" + paint.reset;
  std::string out;
  for (std::size_t group = 0; group < order.size(); ++group) {
    const SourceFile& file = sources[order[group]];
    std::map<std::uint32_t, std::vector<LineLabel>> lines;
    const Label* head = nullptr;
    for (const Label& label : labels) {
      if (label.span.source != order[group]) continue;
      if (head == nullptr || (label.primary && !head->primary)) head = &label;
      const std::uint32_t line = line_of(file, label.span.begin);
      const std::uint32_t start = file.offset_of({line, 1});
      const auto length = static_cast<std::uint32_t>(file.line(line).size());
      const std::uint32_t last = label.span.end > label.span.begin ? line_of(file, label.span.end - 1) : line;
      const std::uint32_t begin = std::min(label.span.begin - start, length);
      const std::uint32_t end = last == line ? std::min(label.span.end - start, length) : length;
      lines[line].push_back({begin, std::max(begin, end), &label, last == line ? 0 : last});
    }
    const LineColumn place = file.locate(head->span.begin);
    out += pad + paint.gutter + (group == 0 ? "--> " : "::: ") + paint.reset +
           fmt::format("{}:{}:{}\n", safe_text(file.name()), place.line, place.column);
    out += bar + "\n";
    std::uint32_t previous = 0;
    for (auto& [line, entries] : lines) {
      if (previous != 0 && line > previous + 1) out += paint.gutter + "..." + paint.reset + "\n";
      previous = line;
      std::stable_sort(entries.begin(), entries.end(),
                       [](const LineLabel& a, const LineLabel& b) { return a.begin < b.begin; });
      const std::string_view shown = without_far_prefix(file.line(line), entries);
      const Window window = cut(shown, entries);
      const std::string number = std::to_string(line);
      out += numbered_line(number, '|', window.text, gutter, paint);
      for (const std::string& row : marker_rows(window.marks, paint)) out += fmt::format("{} {}\n", bar, row);
    }
  }
  return out;
}

std::string edit_preview(const std::vector<Edit>& edits, const SourceMap& sources, std::uint32_t gutter,
                         std::size_t max_lines, const FramePaint& paint) {
  if (edits.empty()) return {};
  std::vector<Edit> sorted = edits;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const Edit& a, const Edit& b) { return a.span.begin < b.span.begin; });
  const SourceId source = sorted.front().span.source;
  const SourceFile& file = sources[source];
  const std::string_view bytes = file.bytes();
  std::string out;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < sorted.size() && shown < max_lines;) {
    if (sorted[i].span.source != source || sorted[i].span.end < sorted[i].span.begin) return {};
    // The lines that this edit and those on the same lines touch.
    const std::uint32_t first = line_of(file, sorted[i].span.begin);
    std::uint32_t last = line_of(file, sorted[i].span.end);
    std::size_t next = i + 1;
    while (next < sorted.size() && sorted[next].span.source == source &&
           line_of(file, sorted[next].span.begin) <= last) {
      if (sorted[next].span.begin < sorted[next - 1].span.end)
        return {};  // overlapping edits have no preview
      last = std::max(last, line_of(file, sorted[next].span.end));
      ++next;
    }
    std::uint32_t at = file.offset_of({first, 1});
    const std::uint32_t end = file.offset_of({last, 1}) + static_cast<std::uint32_t>(file.line(last).size());
    std::string after;
    for (std::size_t k = i; k < next; ++k) {
      after += bytes.substr(at, sorted[k].span.begin - at);
      after += sorted[k].replacement;
      at = sorted[k].span.end;
    }
    if (at < end) after += bytes.substr(at, end - at);
    const auto add = [&](char sign, std::uint32_t line, std::string_view text) {
      if (shown++ >= max_lines) return;
      const std::string number = line == 0 ? "" : std::to_string(line);
      const std::string content = cut(text, {}).text;
      out += numbered_line(number, sign, content, gutter, paint);
    };
    std::vector<std::string_view> before_lines, after_lines;
    for (std::uint32_t line = first; line <= last; ++line) before_lines.push_back(file.line(line));
    for (std::string_view rest = after;;) {
      const auto feed = rest.find('\n');
      std::string_view line = rest.substr(0, feed);
      if (line.ends_with('\r')) line.remove_suffix(1);
      after_lines.push_back(line);
      if (feed == std::string_view::npos) break;
      rest.remove_prefix(feed + 1);
    }
    // Lines that stay need no sign.
    std::size_t same = 0;
    while (same < before_lines.size() && same < after_lines.size() && before_lines[same] == after_lines[same])
      ++same;
    std::size_t tail = 0;
    while (tail + same < before_lines.size() && tail + same < after_lines.size() &&
           before_lines[before_lines.size() - 1 - tail] == after_lines[after_lines.size() - 1 - tail]) {
      ++tail;
    }
    for (std::size_t k = same; k + tail < before_lines.size(); ++k) {
      add('-', first + static_cast<std::uint32_t>(k), before_lines[k]);
    }
    for (std::size_t k = same; k + tail < after_lines.size(); ++k) {
      add('+', first + static_cast<std::uint32_t>(k), after_lines[k]);
    }
    i = next;
  }
  return out;
}

}  // namespace capstan
