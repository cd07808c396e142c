// Words of shell text: quotes, escapes, continued lines and expansions, as parts with their places. The
// reader of commands (shell_script.cpp) stands on it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/environment/shell_script.h"

namespace capstan {

bool is_shell_name_start(char c);
bool is_shell_name(char c);
bool is_shell_blank(char c);
/// `;`, `&`, `|`, parentheses and line ends: what stands between commands.
bool is_shell_operator(char c);

class ShellWordReader {
 public:
  ShellWordReader(SourceId source, std::string_view text, std::vector<SyntaxProblem>& problems)
      : source_(source), text_(text), problems_(problems) {}

 protected:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts_with(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }
  Span span(std::size_t begin, std::size_t end) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  /// A problem of the character at `at`.
  void report(std::string message, std::size_t at);

  /// Blanks and continued line ends.
  void skip_blanks();
  /// From an opening parenthesis to behind its closing one; quotes inside are respected.
  void skip_parentheses();
  /// Up to a blank, an operator or a redirection; may be empty. Problems: what is not closed. `{a,b}` is
  /// several words in a command, and text in the value of an assignment.
  ShellWord take_word(bool expands_braces = true);

  SourceId source_;
  std::string_view text_;
  std::vector<SyntaxProblem>& problems_;
  std::size_t at_ = 0;

 private:
  void take_double_quoted(ShellWord& word);
  void take_expansion(ShellWord& word, bool quoted);
  /// `$'a\n'`; the reader stands on the `$`.
  void take_escaped_quote(ShellWord& word);
  /// Behind `{a,b}` or `{1..3}` at the place of the reader; the place itself when none begins there.
  std::size_t behind_braces() const;
};

}  // namespace capstan
