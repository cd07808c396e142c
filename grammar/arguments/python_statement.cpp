#include "grammar/arguments/python_statement.h"

#include <algorithm>

namespace capstan {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

std::size_t behind_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t", at), text.size());
}

/// Behind `["name"]`, with the name; `at` itself when something else stands there.
std::size_t read_element(std::string_view text, std::size_t at, std::string& name) {
  if (at >= text.size() || text[at] != '[') return at;
  const std::size_t open = behind_blanks(text, at + 1);
  if (open >= text.size() || (text[open] != '"' && text[open] != '\'')) return at;
  const std::size_t close = text.find(text[open], open + 1);
  if (close == std::string_view::npos || close == open + 1) return at;
  const std::string_view inner = text.substr(open + 1, close - open - 1);
  if (inner.find_first_of("\\\n") != std::string_view::npos) return at;
  const std::size_t bracket = behind_blanks(text, close + 1);
  if (bracket >= text.size() || text[bracket] != ']') return at;
  name = inner;
  return bracket + 1;
}

PythonPath read_path(std::string_view text, bool with_elements) {
  PythonPath path;
  std::size_t at = 0;
  bool goes_on = !text.empty() && is_name_start(text[0]);
  while (goes_on) {
    std::size_t end = at;
    while (end < text.size() && is_python_name(text[end])) ++end;
    path.parts.emplace_back(text.substr(at, end - at));
    at = end;
    for (std::string name; with_elements;) {
      const std::size_t behind = read_element(text, at, name);
      if (behind == at) break;
      path.parts.push_back(name);
      at = behind;
    }
    path.length = at;
    goes_on = at + 1 < text.size() && text[at] == '.' && is_name_start(text[at + 1]);
    ++at;
  }
  return path;
}

}  // namespace

bool is_python_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

bool starts_with_python_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view wanted) {
    return text.starts_with(wanted) && (text.size() == wanted.size() || !is_python_name(text[wanted.size()]));
  });
}

std::size_t python_string_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool triple = text.substr(at).starts_with(std::string(3, quote));
  std::size_t end = at + (triple ? 3 : 1);
  while (end < text.size()) {
    if (text[end] == '\\')
      end += 2;
    else if (triple ? text.substr(end).starts_with(std::string(3, quote)) : text[end] == quote)
      return end + (triple ? 2 : 0);
    else
      ++end;
  }
  return text.size();
}

PythonPath read_python_name(std::string_view text) {
  return read_path(text, false);
}

PythonPath read_python_target(std::string_view text) {
  return read_path(text, true);
}

PythonTopLevel::PythonTopLevel(std::string_view text) {
  std::size_t depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = python_string_end(text, i);
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
    } else if (c == '(' || c == '[' || c == '{') {
      ++depth;
    } else if (c == ')' || c == ']' || c == '}') {
      if (depth > 0) --depth;
    } else if (depth == 0) {
      if (c == ',') commas.push_back(i);
      if (c == ':') colons.push_back(i);
      if (c == '=') {
        const char before = i > 0 ? text[i - 1] : ' ', after = i + 1 < text.size() ? text[i + 1] : ' ';
        if (after == '=') {
          ++i;
        } else if (std::string_view("<>!:").find(before) != std::string_view::npos &&
                   !(i > 1 && text[i - 2] == before)) {
          continue;
        } else {
          augmented = augmented || std::string_view("+-*/%|&^@<>").find(before) != std::string_view::npos;
          equals.push_back(i);
        }
      }
    }
  }
}

}  // namespace capstan
