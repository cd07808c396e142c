#include "compiler/config/exchange/launcher_text.h"

namespace capstan {
namespace {

/// Words without quotes and backslashes, one blank between them; inside quotes a backslash is text.
std::optional<std::string> through_xargs(std::string_view text) {
  std::string out;
  bool in_word = false, any_word = false;
  const auto begin_word = [&] {
    if (!in_word && any_word) out += ' ';
    in_word = any_word = true;
  };
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == ' ' || c == '\t' || c == '\n') {
      in_word = false;
      continue;
    }
    begin_word();
    if (c == '\\') {
      if (++at < text.size()) out += text[at];
    } else if (c == '"' || c == '\'') {
      const std::size_t close = text.find(c, at + 1);
      if (close == std::string_view::npos) return std::nullopt;
      out += text.substr(at + 1, close - at - 1);
      at = close;
    } else {
      out += c;
    }
  }
  return out;
}

/// One word of a shell, without quotes around it or between double quotes.
std::optional<std::string> through_eval(std::string_view text, bool in_quotes) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '$' || c == '`' || c == '"' || (c == '\'' && !in_quotes)) return std::nullopt;
    if (c != '\\') {
      out += c;
      continue;
    }
    const bool last = at + 1 == text.size();
    const bool escapes =
        !last && (!in_quotes || std::string_view("$`\"\\").find(text[at + 1]) != std::string_view::npos);
    if (last && in_quotes) return std::nullopt;  // it would escape the closing quote
    if (escapes)
      out += text[++at];
    else if (!last)
      out += c;
  }
  return out;
}

}  // namespace

std::optional<std::string> launched_text(std::string_view value, bool quotes_operators) {
  const auto words = through_xargs(value);
  if (!words) return std::nullopt;
  const bool in_parentheses =
      words->size() > 2 && words->front() == '(' && words->find(')') == words->size() - 1;
  const bool in_quotes = in_parentheses || words->find(' ') != std::string::npos ||
                         (quotes_operators && words->find_first_of("|()") != std::string::npos);
  return through_eval(*words, in_quotes);
}

}  // namespace capstan
