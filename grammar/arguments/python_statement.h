// What one Python statement is made of: names, targets of assignments, and what stands outside its strings,
// brackets and comments. Takes any text, gives offsets into it; nothing is evaluated.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

bool is_python_name(char c);
bool starts_with_python_word(std::string_view text, std::initializer_list<std::string_view> words);
/// The last character of the string that begins at `at`.
std::size_t python_string_end(std::string_view text, std::size_t at);

/// A path at the beginning of a text.
struct PythonPath {
  std::vector<std::string> parts;
  std::size_t length = 0;
};
/// `a.b.c`
PythonPath read_python_name(std::string_view text);
/// `a.b["c"].d`: elements named by a literal are parts, too. Ends in front of any other element.
PythonPath read_python_target(std::string_view text);

/// What stands outside strings, brackets and comments of a statement.
struct PythonTopLevel {
  explicit PythonTopLevel(std::string_view text);

  std::vector<std::size_t> commas, colons, equals;  ///< `=` of assignments, not of comparisons
  bool augmented = false;                           ///< an assignment such as `+=`
};

}  // namespace capstan
