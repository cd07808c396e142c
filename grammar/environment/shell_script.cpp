#include "grammar/environment/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

namespace capstan {
namespace {

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}
bool is_operator(char c) {
  return c == ';' || c == '&' || c == '|' || c == '(' || c == ')' || c == '\n';
}
bool ends_word(char c) {
  return is_blank(c) || is_operator(c) || c == '<' || c == '>';
}

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

constexpr int kMaxNesting = 200;

class ShellReader {
 public:
  ShellReader(SourceId source, std::string_view text, std::vector<SyntaxProblem>& problems)
      : source_(source), text_(text), problems_(problems) {}

  ShellScript run() {
    while (at_ < text_.size()) {
      skip_blanks();
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (c == '#') {
        take_comment();
      } else if (is_operator(c)) {
        take_operator();
      } else {
        take_command();
      }
    }
    return std::move(script_);
  }

 private:
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool starts_with(std::string_view prefix) const { return text_.substr(at_).starts_with(prefix); }
  Span span(std::size_t begin, std::size_t end) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  void report(std::string message, std::size_t at) {
    problems_.push_back({std::move(message), span(at, std::min(at + 1, text_.size())), {}});
  }

  /// Blanks and continued line ends.
  void skip_blanks() {
    while (at_ < text_.size()) {
      if (is_blank(text_[at_]))
        ++at_;
      else if (starts_with("\\\n"))
        at_ += 2;
      else if (starts_with("\\\r\n"))
        at_ += 3;
      else
        return;
    }
  }

  void take_comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::size_t next = end;
    if (end > at_ && text_[end - 1] == '\r') --end;
    while (counted_ < at_) line_ += text_[counted_++] == '\n';
    const std::size_t previous = at_ == 0 ? std::string_view::npos : text_.rfind('\n', at_ - 1);
    const std::size_t start = previous == std::string_view::npos ? 0 : previous + 1;
    const bool alone = text_.substr(start, at_ - start).find_first_not_of(" \t") == std::string_view::npos;
    script_.comments.push_back({span(at_, end), line_, alone});
    at_ = next;
  }

  void take_operator() {
    if (peek() == '\n') {
      ++at_;
      behind_condition_ = false;
      take_here_documents();
      return;
    }
    if (starts_with("&&") || starts_with("||")) {
      behind_condition_ = true;
      at_ += 2;
      return;
    }
    if (peek() == ';') behind_condition_ = false;
    ++at_;
  }

  void take_here_documents() {
    for (const auto& [word, place, expands] : std::exchange(pending_documents_, {})) {
      bool closed = false;
      const std::size_t begin = at_;
      std::size_t body_end = at_;
      while (at_ < text_.size() && !closed) {
        const std::size_t end = std::min(text_.find('\n', at_), text_.size());
        std::string_view line = text_.substr(at_, end - at_);
        while (!line.empty() && line.front() == '\t') line.remove_prefix(1);  // `<<-` allows tabs
        if (line.ends_with('\r')) line.remove_suffix(1);
        closed = line == word;
        if (closed) body_end = at_;
        at_ = std::min(end + 1, text_.size());
      }
      if (closed && !script_.commands.empty())
        script_.commands.back().documents.push_back({span(begin, body_end), expands});
      if (!closed) report(fmt::format("the here-document has no closing `{}`", word), place);
    }
  }

  void take_command() {
    ShellCommand command;
    const std::size_t begin = at_;
    std::size_t end = at_;
    bool declares = false;
    while (true) {
      skip_blanks();
      if (at_ >= text_.size() || is_operator(peek())) {
        if (peek() == '&' && peek(1) == '>') {  // `&> file`
          ++at_;
          take_redirection();
          continue;
        }
        break;
      }
      if (peek() == '#') break;
      if (peek() == '<' || peek() == '>' || is_descriptor_redirection()) {
        take_redirection();
        end = at_;
        continue;
      }
      if (command.words.empty() || declares) {
        if (auto assignment = take_assignment()) {
          command.assignments.push_back(std::move(*assignment));
          end = at_;
          continue;
        }
      }
      const std::size_t word_begin = at_;
      ShellWord word = take_word();
      if (at_ == word_begin) {  // nothing that a word could take: no endless loop
        ++at_;
        continue;
      }
      end = at_;
      const std::string text = word.is_literal() ? word.text() : std::string();
      if (command.words.empty() && command.assignments.empty() && !declares && take_keyword(text)) {
        if (peek_ends_keyword_) break;
        continue;
      }
      if (command.words.empty() && !declares &&
          is_one_of(text, {"export", "declare", "local", "readonly", "typeset"})) {
        declares = true;
        command.exports = text == "export";
        continue;
      }
      if (declares && text.starts_with('-')) {  // `declare -x`
        command.exports = command.exports || text.find('x') != std::string::npos;
        continue;
      }
      if (declares) {  // `export NAME` of an earlier assignment
        exported_.push_back(text);
        continue;
      }
      command.words.push_back(std::move(word));
    }
    command.span = span(begin, end);
    command.conditional = depth_ > 0 || behind_condition_;
    const auto mark_exported = [&](const std::string& name) {
      for (ShellCommand& earlier : script_.commands) {
        if (!earlier.words.empty()) continue;
        for (const ShellAssignment& assignment : earlier.assignments) {
          if (assignment.name == name) earlier.exports = true;
        }
      }
    };
    for (const std::string& name : std::exchange(exported_, {})) mark_exported(name);
    if (!command.words.empty() || !command.assignments.empty())
      script_.commands.push_back(std::move(command));
  }

  /// Reserved words in command position. True if the word is one; commands may follow on the same line.
  bool take_keyword(std::string_view word) {
    peek_ends_keyword_ = false;
    if (is_one_of(word, {"if", "while", "until"})) return ++depth_, true;
    if (is_one_of(word, {"for", "select", "case"})) {
      ++depth_;
      // `for x in a b c` and `case $x in`: the words up to the end of the line are no command.
      while (at_ < text_.size() && peek() != '\n' && peek() != ';') {
        const std::size_t before = at_;
        if (is_blank(peek()) || is_operator(peek()) || peek() == '<' || peek() == '>')
          ++at_;
        else
          take_word();
        if (at_ == before) ++at_;
      }
      peek_ends_keyword_ = true;
      return true;
    }
    if (is_one_of(word, {"fi", "done", "esac", "}"})) {
      if (depth_ > 0) --depth_;
      return true;
    }
    if (word == "{") return ++depth_, true;
    if (word == "function") {
      take_blank_word();
      return true;
    }
    return is_one_of(word, {"then", "else", "elif", "do", "!", "time"});
  }
  void take_blank_word() {
    skip_blanks();
    if (at_ < text_.size() && !is_operator(peek())) take_word();
  }

  bool is_descriptor_redirection() const {
    std::size_t i = at_;
    while (i < text_.size() && text_[i] >= '0' && text_[i] <= '9') ++i;
    return i > at_ && i < text_.size() && (text_[i] == '<' || text_[i] == '>');
  }

  void take_redirection() {
    while (peek() >= '0' && peek() <= '9') ++at_;
    if (starts_with("<<<")) {
      at_ += 3;
    } else if (starts_with("<<")) {
      at_ += 2;
      if (peek() == '-') ++at_;
      skip_blanks();
      const std::size_t begin = at_;
      const ShellWord word = take_word();
      const bool quoted = text_.substr(begin, at_ - begin).find_first_of("'\"\\") != std::string_view::npos;
      pending_documents_.push_back({word.text(), begin, !quoted});
      return;
    } else if (starts_with("<(") || starts_with(">(")) {  // process substitution
      ++at_;
      skip_parentheses();
      return;
    } else {
      while (peek() == '<' || peek() == '>' || peek() == '&' || peek() == '|') ++at_;
    }
    skip_blanks();
    if (at_ < text_.size() && !is_operator(peek())) take_word();
  }

  std::optional<ShellAssignment> take_assignment() {
    std::size_t i = at_;
    if (i >= text_.size() || !is_name_start(text_[i])) return std::nullopt;
    while (i < text_.size() && is_name(text_[i])) ++i;
    const std::size_t name_end = i;
    const bool append = i + 1 < text_.size() && text_[i] == '+' && text_[i + 1] == '=';
    if (append) ++i;
    if (i >= text_.size() || text_[i] != '=') return std::nullopt;
    ShellAssignment assignment;
    assignment.name = std::string(text_.substr(at_, name_end - at_));
    assignment.name_span = span(at_, name_end);
    assignment.append = append;
    at_ = i + 1;
    if (peek() == '(') {
      const std::size_t opening = at_++;
      assignment.is_array = true;
      while (true) {
        skip_blanks();
        if (at_ >= text_.size()) {
          report("the array is not closed", opening);
          break;
        }
        if (peek() == ')') {
          ++at_;
          break;
        }
        if (peek() == '\n')
          ++at_;
        else if (peek() == '#')
          take_comment();
        else if (is_operator(peek()) || peek() == '<' || peek() == '>')
          ++at_;
        else
          assignment.items.push_back(take_word());
      }
      assignment.value.span = span(opening, at_);
      return assignment;
    }
    assignment.value = take_word();
    return assignment;
  }

  ShellWord take_word() {
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

  void take_double_quoted(ShellWord& word) {
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

  void take_expansion(ShellWord& word, bool quoted) {
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
      while (name_end < body.size() && is_name(body[name_end])) ++name_end;
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
    if (at_ < text_.size() && is_name_start(peek())) {
      const std::size_t name = at_;
      while (at_ < text_.size() && is_name(peek())) ++at_;
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

  /// From an opening parenthesis to behind its closing one; quotes inside are respected.
  void skip_parentheses() {
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

  SourceId source_;
  std::string_view text_;
  std::vector<SyntaxProblem>& problems_;
  std::size_t at_ = 0;
  ShellScript script_;
  int depth_ = 0;
  bool behind_condition_ = false;
  bool peek_ends_keyword_ = false;
  struct PendingDocument {
    std::string word;
    std::size_t place;
    bool expands;
  };
  std::vector<PendingDocument> pending_documents_;
  std::vector<std::string> exported_;
  std::uint32_t line_ = 1;
  std::size_t counted_ = 0;
};

}  // namespace

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

ShellScript parse_shell(SourceId source, const SourceMap& sources, std::vector<SyntaxProblem>& problems) {
  return ShellReader(source, sources[source].bytes(), problems).run();
}

void ShellText::add(const std::string& part, Span span, int mark) {
  if (part.empty()) return;
  pieces.push_back({text.size(), span, mark});
  text += part;
}

namespace {

/// Puts places of the source where the reader put those of the made text.
class PlaceMapper {
 public:
  explicit PlaceMapper(const ShellText& text) : text_(text) {}

  void map(ShellScript& script) const {
    for (ShellCommand& command : script.commands) {
      for (ShellAssignment& assignment : command.assignments) {
        map(assignment.name_span);
        map(assignment.value);
        for (ShellWord& item : assignment.items) map(item);
      }
      for (ShellWord& word : command.words) map(word);
      for (ShellHereDocument& document : command.documents) map(document.body);
      map(command.span);
    }
    script.comments.clear();
  }
  /// The place of a part; that of its first piece when the pieces lie apart.
  void map(Span& span) const {
    if (text_.pieces.empty()) {
      span = Span{};
      return;
    }
    const std::size_t begin = span.begin, end = span.end;
    const std::size_t first = index_of(begin), last = index_of(std::max(begin, end == 0 ? 0 : end - 1));
    Span out = text_.pieces[first].span, tail = text_.pieces[last].span;
    if (is_exact(first))
      out.begin += static_cast<std::uint32_t>(std::min(begin - text_.pieces[first].begin, size_of(first)));
    if (is_exact(last)) {
      const std::size_t inside = end > text_.pieces[last].begin ? end - text_.pieces[last].begin : 0;
      tail.end = tail.begin + static_cast<std::uint32_t>(std::min(inside, size_of(last)));
    }
    if (tail.source == out.source && tail.end >= out.begin) out.end = tail.end;
    span = out;
  }

 private:
  void map(ShellWord& word) const {
    for (ShellPart& part : word.parts) {
      part.mark = mark_of(part.span);
      map(part.span);
    }
    map(word.span);
  }
  /// The first mark of the pieces that the part is made of.
  int mark_of(const Span& span) const {
    if (text_.pieces.empty()) return -1;
    for (std::size_t i = index_of(span.begin); i < text_.pieces.size(); ++i) {
      if (text_.pieces[i].begin >= span.end) break;
      if (text_.pieces[i].mark >= 0) return text_.pieces[i].mark;
    }
    return -1;
  }
  std::size_t index_of(std::size_t at) const {
    const auto behind = std::upper_bound(
        text_.pieces.begin(), text_.pieces.end(), at,
        [](std::size_t place, const ShellText::Piece& piece) { return place < piece.begin; });
    return static_cast<std::size_t>(behind - text_.pieces.begin()) - (behind == text_.pieces.begin() ? 0 : 1);
  }
  std::size_t size_of(std::size_t index) const {
    const std::size_t end =
        index + 1 < text_.pieces.size() ? text_.pieces[index + 1].begin : text_.text.size();
    return end - text_.pieces[index].begin;
  }
  bool is_exact(std::size_t index) const {
    return text_.pieces[index].span.end - text_.pieces[index].span.begin == size_of(index);
  }

  const ShellText& text_;
};

}  // namespace

ShellScript parse_shell(const ShellText& text, std::vector<SyntaxProblem>& problems) {
  const std::size_t before = problems.size();
  ShellScript script = ShellReader(kNoSource, text.text, problems).run();
  const PlaceMapper mapper(text);
  mapper.map(script);
  for (std::size_t i = before; i < problems.size(); ++i) mapper.map(problems[i].where);
  return script;
}

}  // namespace capstan
