#include "grammar/environment/shell_script.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "grammar/environment/shell_word_reader.h"
#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxArithmetic = 4096;  // of `((...))`
constexpr std::size_t kMaxSubscript = 256;    // of `A[...]=`
constexpr int kMaxArithmeticDepth = 200;
constexpr std::uint32_t kMaxSubshells = 64;  // deeper ones are told as one

/// A value that `declare -i`, `-u` and the like leave as it is.
bool is_plain_number(const ShellWord& word) {
  if (!word.is_literal()) return false;
  const std::string text = word.text();
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos &&
         (text.size() == 1 || text.front() != '0');
}

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
      if (!goes_on_) end_list();
      take_here_documents();
      return;
    }
    if (starts_with("&&") || starts_with("||")) {
      behind_condition_ = goes_on_ = true;
      at_ += 2;
      return;
    }
    if (peek() == '(') return take_opening();
    if (peek() == ')') {
      take_closing();
    } else if (peek() == '|') {
      isolate(script_.commands.size() - std::min<std::size_t>(script_.commands.size(), 1));
      behind_pipe_ = goes_on_ = true;
      if (peek(1) == '&') ++at_;
    } else if (peek() == '&') {
      isolate(list_begin_);
      end_list();
    } else {
      end_list();
    }
    ++at_;
  }

  void end_list() {
    behind_condition_ = behind_pipe_ = goes_on_ = false;
    list_begin_ = script_.commands.size();
  }

  /// Commands from `begin` on run in a shell of their own. Those in parentheses do in any case, together.
  void isolate(std::size_t begin) {
    for (std::size_t i = std::max(begin, list_begin_); i < script_.commands.size(); ++i) {
      if (script_.commands[i].subshells == subshells()) script_.commands[i].isolated = true;
    }
  }

  void take_closing() {
    if (!open_.empty() && open_.back().opening == '(') {
      const std::size_t list_begin = open_.back().list_begin;
      open_.pop_back();
      --parentheses_;
      kept_ = std::min(kept_, subshells());
      end_list();
      if (parentheses_ < kMaxSubshells) list_begin_ = list_begin;
      return;
    }
    if (!open_.empty()) {  // a pattern of a case is no command
      while (script_.commands.size() > list_begin_ && script_.commands.back().assignments.empty()) {
        kept_ = std::min(kept_, script_.commands.back().kept_subshells);
        script_.commands.pop_back();
      }
    }
    end_list();
  }

  std::uint32_t subshells() const { return std::min(parentheses_, kMaxSubshells); }

  /// `((L++))`, `f()`, or a subshell.
  void take_opening() {
    if (const std::size_t behind = behind_arithmetic(); behind > at_) {
      ShellCommand command;
      const auto add = [&](std::string text, Span place) {
        command.words.push_back({{{ShellPart::Kind::literal, std::move(text), {}, true, place}}, place});
      };
      add("let", span(at_, at_ + 2));
      add(std::string(text_.substr(at_ + 2, behind - at_ - 4)), span(at_ + 2, behind - 2));
      command.span = span(at_, behind);
      at_ = behind;
      return push(std::move(command));
    }
    ++at_;
    const std::size_t next = text_.find_first_not_of(" \t", at_);
    if (next != std::string_view::npos && text_[next] == ')') {
      at_ = next + 1;
      return;
    }
    open_.push_back({'(', list_begin_});
    ++parentheses_;
    end_list();
  }

  /// Behind the `((...))` at the place of the reader; the place itself when none begins there.
  std::size_t behind_arithmetic() const {
    if (!starts_with("((")) return at_;
    int depth = 0;
    const std::size_t end = std::min(text_.size(), at_ + kMaxArithmetic);
    for (std::size_t i = at_; i < end; ++i) {
      if (text_[i] == '(' && ++depth > kMaxArithmeticDepth) return at_;
      if (text_[i] == ')' && --depth == 1) return i + 1 < end && text_[i + 1] == ')' ? i + 2 : at_;
    }
    return at_;
  }

  void push(ShellCommand command) {
    command.conditional = depth_ > 0 || behind_condition_;
    command.isolated = std::exchange(behind_pipe_, false);
    command.subshells = subshells();
    command.kept_subshells = std::exchange(kept_, command.subshells);
    goes_on_ = false;
    script_.commands.push_back(std::move(command));
  }

  /// The variable of a loop: another value in each turn.
  void push_loop_variable(std::size_t begin) {
    ShellCommand command;
    command.span = span(begin, at_);
    command.assignments.emplace_back();
    command.assignments.back().name = std::string(text_.substr(begin, at_ - begin));
    command.assignments.back().name_span = command.span;
    command.assignments.back().value.span = command.span;
    command.assignments.back().open = true;
    push(std::move(command));
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
    bool converts = false;  // `declare -i`, `-u`: the name holds something else than what is assigned
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
          if (converts) converted_.insert(assignment->name);
          if (converted_.contains(assignment->name) &&
              (assignment->is_array || assignment->append || !is_plain_number(assignment->value)))
            assignment->open = true;
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
        converts = converts || (!command.exports && text.find_first_of("iulcn") != std::string::npos);
        command.exports = command.exports || text.find('x') != std::string::npos;
        continue;
      }
      if (declares) {  // `export NAME` of an earlier assignment
        if (converts) converted_.insert(text);
        if (command.exports) exported_.push_back(text);
        continue;
      }
      command.words.push_back(std::move(word));
    }
    command.span = span(begin, end);
    const auto mark_exported = [&](const std::string& name) {
      for (ShellCommand& earlier : script_.commands) {
        if (!earlier.words.empty()) continue;
        for (const ShellAssignment& assignment : earlier.assignments) {
          if (assignment.name == name) earlier.exports = true;
        }
      }
    };
    for (const std::string& name : std::exchange(exported_, {})) mark_exported(name);
    if (!command.words.empty() || !command.assignments.empty()) push(std::move(command));
  }

  /// Reserved words in command position. True if the word is one; commands may follow on the same line.
  bool take_keyword(std::string_view word) {
    peek_ends_keyword_ = false;
    if (is_one_of(word, {"if", "while", "until"})) return ++depth_, true;
    if (is_one_of(word, {"for", "select", "case"})) {
      ++depth_;
      goes_on_ = false;
      skip_blanks();
      peek_ends_keyword_ = true;
      if (word == "case") {
        open_.push_back({'c', 0});
        take_blank_word();
        take_in();
        list_begin_ = script_.commands.size();
        return true;
      }
      if (starts_with("((")) return true;  // the arithmetic of the loop is read as that
      if (const std::size_t begin = at_; is_shell_name_start(peek())) {
        while (is_shell_name(peek())) ++at_;
        push_loop_variable(begin);
      }
      // `for x in a b c`: the words up to the end of the line are no command.
      while (at_ < text_.size() && peek() != '\n' && peek() != ';') {
        const std::size_t before = at_;
        if (is_shell_blank(peek()) || is_shell_operator(peek()) || peek() == '<' || peek() == '>')
          ++at_;
        else
          take_word();
        if (at_ == before) ++at_;
      }
      return true;
    }
    if (is_one_of(word, {"fi", "done", "esac", "}"})) {
      if (word == "esac" && !open_.empty() && open_.back().opening == 'c') open_.pop_back();
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
  /// The `in` of `case $x in`; what follows is a pattern.
  void take_in() {
    skip_blanks();
    if (starts_with("in") && (at_ + 2 >= text_.size() || !is_shell_name(peek(2)))) at_ += 2;
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
    const bool element = i < text_.size() && text_[i] == '[';
    if (element) i = behind_subscript(i);
    const bool append = i + 1 < text_.size() && text_[i] == '+' && text_[i + 1] == '=';
    if (append) ++i;
    if (i >= text_.size() || text_[i] != '=') return std::nullopt;
    ShellAssignment assignment;
    assignment.name = std::string(text_.substr(at_, name_end - at_));
    assignment.name_span = span(at_, name_end);
    assignment.append = append;
    assignment.open = element;
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
        if (peek() == '#') {
          take_comment();
        } else if (peek() == '\n' || is_shell_operator(peek()) || peek() == '<' || peek() == '>') {
          ++at_;
        } else {
          const bool bracket = peek() == '[';
          assignment.items.push_back(take_word());
          if (bracket && assignment.items.back().text().find("]=") != std::string::npos)
            assignment.open = true;  // `A=([3]=x)`
        }
      }
      assignment.value.span = span(opening, at_);
      return assignment;
    }
    assignment.value = take_word(false);
    return assignment;
  }

  /// Behind the `[...]` at `begin`; `begin` when none ends on its line.
  std::size_t behind_subscript(std::size_t begin) const {
    int depth = 0;
    const std::size_t end = std::min(text_.size(), begin + kMaxSubscript);
    for (std::size_t i = begin; i < end && text_[i] != '\n'; ++i) {
      if (text_[i] == '[') ++depth;
      if (text_[i] == ']' && --depth == 0) return i + 1;
    }
    return begin;
  }

  ShellScript script_;
  int depth_ = 0;
  struct Open {
    char opening;  ///< `(` of a subshell, `c` of case, whose patterns end in `)`
    std::size_t list_begin;
  };
  std::vector<Open> open_;
  std::uint32_t parentheses_ = 0, kept_ = 0;
  bool behind_pipe_ = false, goes_on_ = false;  ///< goes on: the list does not end with the line
  std::size_t list_begin_ = 0;                  ///< first command of what a `&` sends to the background
  std::set<std::string> converted_;             ///< names of `declare -i` and the like
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
