#include "grammar/environment/shell_word_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

constexpr int kMaxNesting = 200;
constexpr std::size_t kLongestBraces = 1024;
constexpr int kDeepestBraces = 16;

bool ends_word(char c) {
  return is_shell_blank(c) || is_shell_operator(c) || c == '<' || c == '>';
}

}  // namespace

bool is_shell_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_shell_name(char c) {
  return is_shell_name_start(c) || (c >= '0' && c <= '9');
}
bool is_shell_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_shell_operator(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '\n';
}

void ShellWordReader::report(std::string message, std::size_t at) {
  problems_.push_back({std::move(message), span(at, std::min(at + 1, text_.size())), {}});
}

void ShellWordReader::skip_blanks() {
  while (at_ < text_.size()) {
    if (is_shell_blank(text_[at_]))
      ++at_;
    else if (starts_with("\\\n"))
      at_ += 2;
    else if (starts_with("\\\r\n"))
      at_ += 3;
    else
      return;
  }
}

ShellWord ShellWordReader::take_word(bool expands_braces) {
  ShellWord word;
  const std::size_t begin = at_;
  std::string literal;
  std::size_t literal_begin = at_;
  const auto flush = [&](bool quoted) {
    if (!literal.empty()) {
      word.parts.push_back(
          {ShellPart::Kind::literal, std::exchange(literal, {}), {}, quoted, span(literal_begin, at_)});
    }
  };
  while (at_ < text_.size() && !ends_word(peek())) {
    const char c = peek();
    if (literal.empty()) literal_begin = at_;
    if (c == '\\') {
      flush(false);  // so that every part stands in the source as it is, or is one escaped character
      literal_begin = at_;
      if (starts_with("\\\n"))
        at_ += 2;
      else if (starts_with("\\\r\n"))
        at_ += 3;
      else if (at_ + 1 < text_.size())
        literal += text_[at_ + 1], at_ += 2;
      else
        ++at_;
      flush(false);
    } else if (c == '\'') {
      flush(false);
      const std::size_t opening = at_++;
      const std::size_t closing = text_.find('\'', at_);
      if (closing == std::string_view::npos) {
        report("the quote is not closed", opening);
        at_ = text_.size();
        break;
      }
      word.parts.push_back({ShellPart::Kind::literal,
                            std::string(text_.substr(at_, closing - at_)),
                            {},
                            true,
                            span(at_, closing)});
      at_ = closing + 1;
    } else if (c == '"') {
      flush(false);
      take_double_quoted(word);
    } else if (starts_with("$'")) {
      flush(false);
      take_escaped_quote(word);
    } else if (starts_with("$\"")) {  // a text to translate
      flush(false);
      ++at_;
      take_double_quoted(word);
    } else if (c == '$' || c == '`') {
      flush(false);
      take_expansion(word, false);
    } else if (const std::size_t behind = c == '{' && expands_braces ? behind_braces() : at_; behind > at_) {
      flush(false);
      const std::size_t opening = std::exchange(at_, behind);
      word.parts.push_back({ShellPart::Kind::opaque,
                            std::string(text_.substr(opening, behind - opening)),
                            {},
                            false,
                            span(opening, behind)});
    } else {
      literal += c;
      ++at_;
    }
  }
  flush(false);
  word.span = span(begin, at_);
  return word;
}

void ShellWordReader::take_double_quoted(ShellWord& word) {
  const std::size_t opening = at_++;
  std::string literal;
  std::size_t literal_begin = at_;
  const auto flush = [&] {
    word.parts.push_back(
        {ShellPart::Kind::literal, std::exchange(literal, {}), {}, true, span(literal_begin, at_)});
  };
  while (true) {
    if (at_ >= text_.size()) {
      report("the quote is not closed", opening);
      break;
    }
    const char c = peek();
    if (c == '"') break;
    if (c == '\\' && at_ + 1 < text_.size()) {
      const char next = text_[at_ + 1];
      const bool line_end = next == '\n' || starts_with("\\\r\n");
      if (line_end || next == '"' || next == '\\' || next == '$' || next == '`') {
        if (!literal.empty()) flush();
        literal_begin = at_;
        if (line_end) {
          at_ += next == '\n' ? 2 : 3;
        } else {
          literal += next;
          at_ += 2;
          flush();
        }
        literal_begin = at_;
      } else {
        literal += c;
        ++at_;
      }
    } else if (c == '$' || c == '`') {
      flush();
      take_expansion(word, true);
      literal_begin = at_;
    } else {
      literal += c;
      ++at_;
    }
  }
  flush();
  if (at_ < text_.size()) ++at_;
}

void ShellWordReader::take_escaped_quote(ShellWord& word) {
  const std::size_t opening = at_;
  at_ += 2;
  std::string text;
  bool known = true;
  for (; at_ < text_.size() && text_[at_] != '\''; ++at_) {
    if (text_[at_] != '\\' || at_ + 1 >= text_.size()) {
      text += text_[at_];
      continue;
    }
    constexpr std::string_view kLetters = "abeEfnrtv\\'\"?", kMeanings = "\a\b\x1B\x1B\f\n\r\t\v\\'\"?";
    const std::size_t letter = kLetters.find(text_[++at_]);
    known = known && letter != std::string_view::npos;  // `\x41` and other numbers are left to a shell
    if (known) text += kMeanings[letter];
  }
  if (at_ >= text_.size()) {
    report("the quote is not closed", opening);
    return;
  }
  ++at_;
  word.parts.push_back({known ? ShellPart::Kind::literal : ShellPart::Kind::opaque,
                        known ? text : std::string(text_.substr(opening, at_ - opening)),
                        {},
                        true,
                        span(opening, at_)});
}

std::size_t ShellWordReader::behind_braces() const {
  int depth = 0;
  bool several = false;
  const std::size_t end = std::min(text_.size(), at_ + kLongestBraces);
  for (std::size_t i = at_; i < end; ++i) {
    const char c = text_[i];
    if (c == '\\') {
      ++i;
    } else if (c == '\'' || c == '"') {
      i = std::min(text_.find(c, i + 1), end);
    } else if (c == '{') {
      if (++depth > kDeepestBraces) return at_ + 1;
    } else if (c == '}') {
      if (--depth == 0) return several ? i + 1 : at_;
    } else if (c == ',' || text_.substr(i, 2) == "..") {
      several = true;
    } else if (ends_word(c)) {
      return at_;
    }
  }
  return end == text_.size() ? at_ : at_ + 1;  // too long to tell: what it means is left to a shell
}

void ShellWordReader::take_expansion(ShellWord& word, bool quoted) {
  const std::size_t begin = at_;
  const auto add = [&](ShellPart::Kind kind, std::string_view text, std::string_view fallback = {}) {
    word.parts.push_back({kind, std::string(text), std::string(fallback), quoted, span(begin, at_)});
  };
  const auto opaque = [&] { add(ShellPart::Kind::opaque, text_.substr(begin, at_ - begin)); };
  if (peek() == '`') {
    const std::size_t closing = text_.find('`', at_ + 1);
    if (closing == std::string_view::npos) report("the command substitution is not closed", begin);
    at_ = closing == std::string_view::npos ? text_.size() : closing + 1;
    return opaque();
  }
  if (starts_with("$(")) {
    ++at_;
    skip_parentheses();
    return opaque();
  }
  if (starts_with("${")) {
    at_ += 2;
    const std::size_t inner = at_;
    int depth = 1;
    while (at_ < text_.size() && depth > 0) {
      if (peek() == '{') ++depth;
      if (peek() == '}') --depth;
      ++at_;
    }
    if (depth > 0) {
      report("the expansion is not closed", begin);
      return opaque();
    }
    const std::string_view body = text_.substr(inner, at_ - 1 - inner);
    std::size_t name_end = 0;
    while (name_end < body.size() && is_shell_name(body[name_end])) ++name_end;
    const std::string_view name = body.substr(0, name_end), rest = body.substr(name_end);
    if (name.empty()) return opaque();
    if (rest.empty()) return add(ShellPart::Kind::variable, name);
    if (rest == "[@]" || rest == "[*]") return add(ShellPart::Kind::array, name);
    for (const std::string_view sign : {":-", ":=", "-", "="}) {
      if (!rest.starts_with(sign)) continue;
      std::string_view fallback = rest.substr(sign.size());
      const bool in_quotes = fallback.size() > 1 && (fallback.front() == '"' || fallback.front() == '\'') &&
                             fallback.front() == fallback.back();
      if (in_quotes) fallback = fallback.substr(1, fallback.size() - 2);
      if (fallback.find_first_of("$`\"'\\") != std::string_view::npos) break;
      add(ShellPart::Kind::defaulted, name, fallback);
      word.parts.back().fallback_quoted = in_quotes;
      return;
    }
    return opaque();
  }
  ++at_;
  if (at_ < text_.size() && is_shell_name_start(peek())) {
    const std::size_t name = at_;
    while (at_ < text_.size() && is_shell_name(peek())) ++at_;
    return add(ShellPart::Kind::variable, text_.substr(name, at_ - name));
  }
  if (peek() == '@' || peek() == '*') {
    ++at_;
    return add(ShellPart::Kind::array, "@");
  }
  if (at_ < text_.size() && std::string_view("?#!$-0123456789").find(peek()) != std::string_view::npos) {
    ++at_;
    return opaque();
  }
  add(ShellPart::Kind::literal, "$");
}

void ShellWordReader::skip_parentheses() {
  const std::size_t opening = at_;
  int depth = 0;
  while (at_ < text_.size()) {
    const char c = peek();
    if (c == '\\') {
      at_ = std::min(at_ + 2, text_.size());
      continue;
    }
    if (c == '\'' || c == '"') {
      const std::size_t closing = text_.find(c, at_ + 1);
      if (closing == std::string_view::npos) break;
      at_ = closing + 1;
      continue;
    }
    ++at_;
    if (c == '(' && ++depth > kMaxNesting) break;
    if (c == ')' && --depth == 0) return;
  }
  report("the parenthesis is not closed", opening);
  at_ = text_.size();
}

bool ShellWord::is_literal() const {
  return std::all_of(parts.begin(), parts.end(),
                     [](const ShellPart& part) { return part.kind == ShellPart::Kind::literal; });
}

std::string ShellWord::text() const {
  std::string out;
  for (const ShellPart& part : parts) {
    switch (part.kind) {
      case ShellPart::Kind::variable:
        out += "$" + part.text;
        break;
      case ShellPart::Kind::array:
        out += part.text == "@" ? "$@" : "${" + part.text + "[@]}";
        break;
      case ShellPart::Kind::defaulted:
        out += fmt::format("${{{}:-{}{}{}}}", part.text, part.fallback_quoted ? "\"" : "", part.fallback,
                           part.fallback_quoted ? "\"" : "");
        break;
      case ShellPart::Kind::literal:
      case ShellPart::Kind::opaque:
        out += part.text;
        break;
    }
  }
  return out;
}

}  // namespace capstan
