#include "grammar/environment/shell_word_reader.h"

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

constexpr int kMaxNesting = 200;

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

ShellWord ShellWordReader::take_word() {
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
    } else if (c == '$' || c == '`') {
      flush(false);
      take_expansion(word, false);
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
      if (rest.starts_with(sign) && rest.find_first_of("$`\"'\\") == std::string_view::npos) {
        return add(ShellPart::Kind::defaulted, name, rest.substr(sign.size()));
      }
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
        out += "${" + part.text + ":-" + part.fallback + "}";
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
