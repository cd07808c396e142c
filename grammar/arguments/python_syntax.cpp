#include "grammar/arguments/python_syntax.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace capstan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_name_byte(char c) {
  return is_python_name(c) || static_cast<unsigned char>(c) >= 0x80;
}

bool is_keyword(std::string_view word) {
  constexpr std::array<std::string_view, 15> kWords = {"and",    "as",   "async", "await", "else",
                                                       "for",    "from", "if",    "in",    "is",
                                                       "lambda", "not",  "or",    "yield", "print"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

/// Digits with single underscores between them.
bool are_digits(std::string_view text, std::string_view allowed) {
  if (text.empty() || text.front() == '_' || text.back() == '_' || text.find("__") != std::string_view::npos)
    return false;
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return c == '_' || allowed.find(c) != std::string_view::npos; });
}

bool is_number(std::string_view text) {
  constexpr std::string_view kDecimal = "0123456789";
  if (text.size() > 1 && text[0] == '0') {
    const char radix = text[1];
    std::string_view rest = text.substr(2);
    if (rest.starts_with('_')) rest.remove_prefix(1);
    if (radix == 'x' || radix == 'X') return are_digits(rest, "0123456789abcdefABCDEF");
    if (radix == 'o' || radix == 'O') return are_digits(rest, "01234567");
    if (radix == 'b' || radix == 'B') return are_digits(rest, "01");
  }
  const bool imaginary = text.ends_with('j') || text.ends_with('J');
  if (imaginary) text.remove_suffix(1);
  const std::size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    std::string_view power = text.substr(exponent + 1);
    if (power.starts_with('+') || power.starts_with('-')) power.remove_prefix(1);
    if (!are_digits(power, kDecimal)) return false;
  }
  const std::string_view body = text.substr(0, exponent);
  const std::size_t point = body.find('.');
  if (point == std::string_view::npos) {
    if (!are_digits(body, kDecimal)) return false;
    const bool floating = imaginary || exponent != std::string_view::npos;
    return floating || body.front() != '0' || body.find_first_not_of("0_") == std::string_view::npos;
  }
  const std::string_view whole = body.substr(0, point), part = body.substr(point + 1);
  if (whole.empty() && part.empty()) return false;
  return (whole.empty() || are_digits(whole, kDecimal)) && (part.empty() || are_digits(part, kDecimal));
}

struct Token {
  enum class Kind { name, keyword, number, string, open, close, comma, dot, sign, binary, other };
  Kind kind;
  std::size_t begin, end;
};

std::vector<Token> tokens_of(std::string_view text, std::size_t begin, std::size_t end) {
  std::vector<Token> out;
  const auto add = [&](Token::Kind kind, std::size_t from, std::size_t to) {
    out.push_back({kind, from, to});
  };
  for (std::size_t at = begin; at < end;) {
    const char c = text[at];
    const std::size_t from = at;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v' || c == '\\') {
      ++at;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), end);
    } else if (c == '"' || c == '\'') {
      at = std::min(python_string_end(text, at) + 1, end);
      add(Token::Kind::string, from, at);
    } else if (is_digit(c) || (c == '.' && at + 1 < end && is_digit(text[at + 1]))) {
      const bool hex = text.substr(at, 2) == "0x" || text.substr(at, 2) == "0X";
      while (at < end &&
             (is_name_byte(text[at]) || text[at] == '.' ||
              ((text[at] == '+' || text[at] == '-') && !hex && (text[at - 1] == 'e' || text[at - 1] == 'E'))))
        ++at;
      // `1if x else 2` is a number and a word.
      const std::size_t word = std::min(text.find_first_not_of("0123456789_.", from), at);
      if (word < at && is_keyword(text.substr(word, at - word))) at = word;
      add(Token::Kind::number, from, at);
    } else if (is_name_byte(c)) {
      while (at < end && is_name_byte(text[at])) ++at;
      const bool prefix =
          at < end && (text[at] == '"' || text[at] == '\'') && at - from <= 2 &&
          text.substr(from, at - from).find_first_not_of("rRbBfFuUtT") == std::string_view::npos;
      if (prefix) {
        at = std::min(python_string_end(text, at) + 1, end);
        add(Token::Kind::string, from, at);
      } else {
        add(is_keyword(text.substr(from, at - from)) ? Token::Kind::keyword : Token::Kind::name, from, at);
      }
    } else {
      const std::string_view two = text.substr(at, std::min<std::size_t>(2, end - at));
      ++at;
      if (c == '(' || c == '[' || c == '{') {
        add(Token::Kind::open, from, at);
      } else if (c == ')' || c == ']' || c == '}') {
        add(Token::Kind::close, from, at);
      } else if (c == ',') {
        add(Token::Kind::comma, from, at);
      } else if (text.substr(from, 3) == "...") {
        at = from + 3;
        add(Token::Kind::name, from, at);
      } else if (c == '.') {
        add(Token::Kind::dot, from, at);
      } else if (two == "==" || two == "!=" || two == "<=" || two == ">=" || two == "<<" || two == ">>" ||
                 two == "//") {
        at = from + 2;
        add(Token::Kind::binary, from, at);
      } else if (two == "**" || c == '*' || c == '+' || c == '-' || c == '~') {
        at = from + (two == "**" ? 2 : 1);
        add(Token::Kind::sign, from, at);  // may stand in front of an operand as well as between two
      } else if (std::string_view("/%&|^<>@").find(c) != std::string_view::npos) {
        add(Token::Kind::binary, from, at);
      } else {
        add(Token::Kind::other, from, at);  // `:` and `=` inside brackets, and what Python does not have
      }
    }
  }
  return out;
}

std::optional<PythonFault> fault(const Token& token, std::string message) {
  return PythonFault{token.begin, token.end, std::move(message)};
}

bool is_operand(const Token& token) {
  return token.kind == Token::Kind::name || token.kind == Token::Kind::number ||
         token.kind == Token::Kind::string;
}

/// The first thing in a value that no expression of Python holds.
std::optional<PythonFault> fault_of_value(std::string_view text, std::size_t begin, std::size_t end) {
  using Kind = Token::Kind;
  const std::vector<Token> tokens = tokens_of(text, begin, end);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const Token& token = tokens[i];
    const std::string_view word = text.substr(token.begin, token.end - token.begin);
    const Token* const before = i > 0 ? &tokens[i - 1] : nullptr;
    const bool last = i + 1 == tokens.size();
    const bool ends = last || tokens[i + 1].kind == Kind::close || tokens[i + 1].kind == Kind::comma;
    if (token.kind == Kind::other && (word == "$" || word == "?" || word == "`" || word == "!"))
      return fault(token, fmt::format("`{}` has no meaning in Python", word));
    if (token.kind == Kind::number && !is_number(word))
      return fault(token, fmt::format("`{}` is no number of Python", word));
    if (is_operand(token) && before != nullptr && (is_operand(*before) || before->kind == Kind::close)) {
      const bool joined = token.kind == Kind::string && before->kind == Kind::string;
      if (!joined) return fault(token, "two values stand side by side; an operator or a comma is missing");
    }
    const bool starts = before == nullptr || before->kind == Kind::open || before->kind == Kind::comma;
    if (token.kind == Kind::binary && (starts || before->kind == Kind::binary || before->kind == Kind::sign))
      return fault(token, fmt::format("`{}` lacks a value in front of it", word));
    // A lone star stands for parameters, as in `lambda *, x: x`.
    if ((token.kind == Kind::binary || (token.kind == Kind::sign && word != "*")) && ends)
      return fault(token, fmt::format("`{}` lacks a value behind it", word));
    if (token.kind == Kind::sign && word == "*" && last) return fault(token, "`*` lacks a value behind it");
    if (token.kind == Kind::comma && starts) return fault(token, "a value is missing in front of the comma");
    if (token.kind == Kind::dot &&
        (last || (tokens[i + 1].kind != Kind::name && tokens[i + 1].kind != Kind::keyword)))
      return fault(token, "a name is missing behind the dot");
    if (token.kind == Kind::dot &&
        (before == nullptr || (!is_operand(*before) && before->kind != Kind::close)))
      return fault(token, "a value is missing in front of the dot");
  }
  return std::nullopt;
}

std::size_t behind_blanks(std::string_view text, std::size_t at) {
  return std::min(text.find_first_not_of(" \t\r\n\\", at), text.size());
}

/// `begin` to `end`: in front of an `=`. Judged are how it begins, and what begins like a part of a config.
std::optional<PythonFault> fault_of_target(std::string_view text, std::size_t begin, std::size_t end,
                                           bool annotated) {
  const char first = text[begin];
  const bool may_begin = (is_name_byte(first) && !is_digit(first)) ||
                         std::string_view("([{*\"'").find(first) != std::string_view::npos;
  if (!may_begin) return PythonFault{begin, end, "this cannot be assigned to"};
  const PythonPath path = read_python_target(text.substr(begin, end - begin));
  const std::size_t at = std::min(behind_blanks(text, begin + path.length), end);
  if (path.parts.empty() || at >= end) return std::nullopt;
  const char c = text[at];
  const bool dotted = path.parts.size() > 1 || c == '.';
  if (!dotted || c == '[' || c == '(' || c == ',' || (c == ':' && annotated)) return std::nullopt;
  if (c == '.') {
    const std::size_t name = behind_blanks(text, at + 1);
    if (name < end && is_name_byte(text[name]) && !is_digit(text[name])) return std::nullopt;
    return PythonFault{at, at + 1, "a name is missing behind the dot"};
  }
  return PythonFault{at, end, "this cannot be assigned to"};
}

bool has_word(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || !is_name_byte(text[at - 1])) && (end == text.size() || !is_name_byte(text[end])))
      return true;
  }
  return false;
}

}  // namespace

std::optional<PythonFault> find_python_fault(std::string_view text, const PythonTopLevel& top) {
  if (top.equals.empty()) {
    // `cfg.model.x 3`, `cfg.model.x := 3`: a path, and something that is no operator.
    const PythonPath path = read_python_target(text);
    if (path.parts.size() < 2 || path.length >= text.size()) return std::nullopt;
    const std::size_t at = behind_blanks(text, path.length);
    if (at >= text.size()) return std::nullopt;
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    if (text.substr(at, 2) == ":=")
      return PythonFault{at, at + 2, "`:=` assigns to plain names only; needs `=`"};
    std::size_t word_end = at;
    while (word_end < text.size() && is_name_byte(text[word_end])) ++word_end;
    const bool value =
        text[at] == '"' || text[at] == '\'' || (word_end > at && !is_keyword(text.substr(at, word_end - at)));
    if (value && at > path.length) return PythonFault{at, end, "an `=` is missing in front of this"};
    return std::nullopt;
  }
  if (has_word(text, "lambda")) return std::nullopt;  // its parameters look like assignments
  for (std::size_t i = 0; i < top.equals.size(); ++i) {
    const std::size_t begin = behind_blanks(text, i == 0 ? 0 : top.equals[i - 1] + 1);
    std::size_t end = top.equals[i];
    if (top.augmented)
      while (end > begin && std::string_view("+-*/%|&^@<>").find(text[end - 1]) != std::string_view::npos)
        --end;
    while (end > begin && (text[end - 1] == ' ' || text[end - 1] == '\t')) --end;
    if (begin >= end)
      return PythonFault{top.equals[i], top.equals[i] + 1, "a target is missing in front of this `=`"};
    if (auto found = fault_of_target(text, begin, end, i == 0)) return found;
  }
  const std::size_t equals = top.equals.back();
  if (behind_blanks(text, equals + 1) >= text.size() || text[behind_blanks(text, equals + 1)] == '#')
    return PythonFault{equals, equals + 1, "a value is missing behind this `=`"};
  return fault_of_value(text, equals + 1, text.size());
}

}  // namespace capstan
