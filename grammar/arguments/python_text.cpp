#include "grammar/arguments/python_text.h"

#include <algorithm>

#include "grammar/arguments/python_statement.h"

namespace capstan {

Span PythonText::span(std::size_t begin, std::size_t end) const {
  return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

PythonRange PythonText::trim(PythonRange range) const {
  const auto blank = [&](std::size_t at) {
    return std::string_view(" \t\r\n\\").find(bytes_[at]) != std::string_view::npos;
  };
  while (range.begin < range.end && (blank(range.begin) || bytes_[range.begin] == '#')) {
    if (bytes_[range.begin] == '#') range.begin = std::min(bytes_.find('\n', range.begin), range.end);
    if (range.begin < range.end) ++range.begin;
  }
  while (range.end > range.begin && blank(range.end - 1)) --range.end;
  return range;
}

std::vector<PythonRange> PythonText::parts_of(PythonRange range) const {
  const PythonTopLevel top(of(range));
  std::vector<PythonRange> out;
  std::size_t begin = range.begin;
  for (const std::size_t comma : top.commas) {
    out.push_back(trim({begin, range.begin + comma}));
    begin = range.begin + comma + 1;
  }
  const PythonRange last = trim({begin, range.end});
  if (!last.empty()) out.push_back(last);
  return out;
}

PythonRange PythonText::without_parentheses(PythonRange range) const {
  const std::string_view all = of(range);
  if (all.size() < 2 || (all.front() != '(' && all.front() != '[') ||
      (all.back() != ')' && all.back() != ']'))
    return range;
  return trim({range.begin + 1, range.end - 1});
}

std::size_t PythonText::matching(std::size_t open) const {
  std::size_t depth = 0;
  for (std::size_t i = open; i < bytes_.size(); ++i) {
    const char c = bytes_[i];
    if (c == '"' || c == '\'') {
      i = python_string_end(bytes_, i);
    } else if (c == '#') {
      i = std::min(bytes_.find('\n', i), bytes_.size());
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
      return i;
    }
  }
  return bytes_.size();
}

}  // namespace capstan
