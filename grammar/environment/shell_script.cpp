#include "grammar/environment/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "grammar/environment/shell_word_reader.h"
#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

bool is_one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

class ShellReader : ShellWordReader {
 public:
  ShellReader(SourceId source, std::string_view text, std::vector<SyntaxProblem>& problems)
      : ShellWordReader(source, text, problems) {
    at_ = byte_order_mark_size(text);
  }

  ShellScript run() {
    while (at_ < text_.size()) {
      skip_blanks();
      if (at_ >= text_.size()) break;
      const char c = text_[at_];
      if (c == '#') {
        take_comment();
      } else if (is_shell_operator(c)) {
        take_operator();
      } else {
        take_command();
      }
    }
    return std::move(script_);
  }

 private:
  void take_comment() {
    std::size_t end = std::min(text_.find('\n', at_), text_.size());
    const std::size_t next = end;
    if (end > at_ && text_[end - 1] == '\r') --end;
    while (counted_ < at_) line_ += text_[counted_++] == '\n';
    const std::size_t previous = at_ == 0 ? std::string_view::npos : text_.rfind('\n', at_ - 1);
    const std::size_t start = previous == std::string_view::npos ? byte_order_mark_size(text_) : previous + 1;
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
      if (at_ >= text_.size() || is_shell_operator(peek())) {
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
        if (is_shell_blank(peek()) || is_shell_operator(peek()) || peek() == '<' || peek() == '>')
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
    if (at_ < text_.size() && !is_shell_operator(peek())) take_word();
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
    if (at_ < text_.size() && !is_shell_operator(peek())) take_word();
  }

  std::optional<ShellAssignment> take_assignment() {
    std::size_t i = at_;
    if (i >= text_.size() || !is_shell_name_start(text_[i])) return std::nullopt;
    while (i < text_.size() && is_shell_name(text_[i])) ++i;
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
        if (peek() == '#')
          take_comment();
        else if (peek() == '\n' || is_shell_operator(peek()) || peek() == '<' || peek() == '>')
          ++at_;
        else
          assignment.items.push_back(take_word());
      }
      assignment.value.span = span(opening, at_);
      return assignment;
    }
    assignment.value = take_word(false);
    return assignment;
  }

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

ShellScript parse_shell(SourceId source, std::string_view text, std::vector<SyntaxProblem>& problems) {
  return ShellReader(source, text, problems).run();
}

ShellScript parse_shell(SourceId source, const SourceMap& sources, std::vector<SyntaxProblem>& problems) {
  return parse_shell(source, sources[source].bytes(), problems);
}

}  // namespace capstan
