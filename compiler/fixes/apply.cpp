#include "compiler/fixes/apply.h"

#include <fmt/format.h>

#include <algorithm>

namespace capstan {
namespace {

constexpr std::size_t kContext = 3;

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::size_t length = end == std::string_view::npos ? text.size() : end + 1;
    lines.push_back(text.substr(0, length));
    text.remove_prefix(length);
  }
  return lines;
}

struct DiffLine {
  char sign;
  std::string_view text;
};

/// Longest common subsequence of the part that differs; a very large part is shown as replaced.
std::vector<DiffLine> compare(const std::vector<std::string_view>& a,
                              const std::vector<std::string_view>& b) {
  std::size_t head = 0;
  while (head < a.size() && head < b.size() && a[head] == b[head]) ++head;
  std::size_t tail = 0;
  while (tail < a.size() - head && tail < b.size() - head && a[a.size() - 1 - tail] == b[b.size() - 1 - tail])
    ++tail;
  const std::size_t rows = a.size() - head - tail;
  const std::size_t columns = b.size() - head - tail;
  std::vector<DiffLine> out;
  for (std::size_t i = 0; i < head; ++i) out.push_back({' ', a[i]});
  if (rows * columns <= 4'000'000) {
    std::vector<std::uint32_t> common((rows + 1) * (columns + 1), 0);
    const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
      return common[i * (columns + 1) + j];
    };
    for (std::size_t i = rows; i-- > 0;) {
      for (std::size_t j = columns; j-- > 0;) {
        at(i, j) = a[head + i] == b[head + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
      }
    }
    std::size_t i = 0;
    std::size_t j = 0;
    while (i < rows || j < columns) {
      if (i < rows && j < columns && a[head + i] == b[head + j]) {
        out.push_back({' ', a[head + i]});
        ++i;
        ++j;
      } else if (i < rows && (j == columns || at(i + 1, j) >= at(i, j + 1))) {
        out.push_back({'-', a[head + i++]});
      } else {
        out.push_back({'+', b[head + j++]});
      }
    }
  } else {
    for (std::size_t i = 0; i < rows; ++i) out.push_back({'-', a[head + i]});
    for (std::size_t j = 0; j < columns; ++j) out.push_back({'+', b[head + j]});
  }
  for (std::size_t i = a.size() - tail; i < a.size(); ++i) out.push_back({' ', a[i]});
  return out;
}

}  // namespace

std::optional<std::string> apply_edits(std::string_view text, std::vector<Edit> edits) {
  std::stable_sort(edits.begin(), edits.end(), [](const Edit& a, const Edit& b) {
    return a.span.begin != b.span.begin ? a.span.begin < b.span.begin : a.span.end < b.span.end;
  });
  edits.erase(std::unique(edits.begin(), edits.end(),
                          [](const Edit& a, const Edit& b) {
                            return a.span == b.span && a.replacement == b.replacement;
                          }),
              edits.end());
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits) {
    if (edit.span.begin < at || edit.span.end < edit.span.begin || edit.span.end > text.size())
      return std::nullopt;
    out += text.substr(at, edit.span.begin - at);
    out += edit.replacement;
    at = edit.span.end;
  }
  out += text.substr(at);
  return out;
}

std::string unified_diff(const std::string& name, std::string_view before, std::string_view after) {
  if (before == after) return "";
  const std::vector<DiffLine> lines = compare(lines_of(before), lines_of(after));
  // A line ending within a name would end the header.
  const std::string quoted = to_text(Value(name));
  const std::string& shown = quoted.size() == name.size() + 2 ? name : quoted;
  std::string out = fmt::format("--- {}\n+++ {}\n", shown, shown);
  std::size_t old_line = 1;
  std::size_t new_line = 1;
  std::size_t i = 0;
  while (i < lines.size()) {
    if (lines[i].sign == ' ') {
      ++old_line;
      ++new_line;
      ++i;
      continue;
    }
    // A hunk runs until more than two contexts of equal lines follow.
    std::size_t end = i;
    for (std::size_t j = i, quiet = 0; j < lines.size() && quiet <= 2 * kContext; ++j) {
      quiet = lines[j].sign == ' ' ? quiet + 1 : 0;
      if (quiet == 0) end = j + 1;
    }
    const std::size_t lead = std::min(kContext, i);
    const std::size_t first = i - lead;
    const std::size_t last = std::min(lines.size(), end + kContext);
    std::size_t old_count = 0;
    std::size_t new_count = 0;
    for (std::size_t j = first; j < last; ++j) {
      old_count += lines[j].sign != '+';
      new_count += lines[j].sign != '-';
    }
    const std::size_t old_start = old_line - lead;
    const std::size_t new_start = new_line - lead;
    out += fmt::format("@@ -{},{} +{},{} @@\n", old_count == 0 ? old_start - 1 : old_start, old_count,
                       new_count == 0 ? new_start - 1 : new_start, new_count);
    for (std::size_t j = first; j < last; ++j) {
      out += lines[j].sign;
      out += lines[j].text;
      if (lines[j].text.empty() || lines[j].text.back() != '\n') out += "\n\\ No newline at end of file\n";
    }
    for (std::size_t j = i; j < last; ++j) {
      old_line += lines[j].sign != '+';
      new_line += lines[j].sign != '-';
    }
    i = last;
  }
  return out;
}

}  // namespace capstan
