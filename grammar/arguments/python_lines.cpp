#include "grammar/arguments/python_lines.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

class LineSplitter {
 public:
  LineSplitter(SourceId source, std::string_view text)
      : source_(source), text_(text), at_(byte_order_mark_size(text)) {}

  bool run(PythonLines& lines, SyntaxProblem& problem) {
    std::size_t indent = 0;
    while (at_ < text_.size()) {
      const std::size_t start = at_;
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      const bool goes_on = start > 0 && text_[start - 1] == ';';
      if (!goes_on) indent = at_ - start;
      PythonLine line{at_, at_, indent, goes_on};
      if (!take_line(line, lines.comments, problem)) return false;
      if (line.end > line.begin) lines.statements.push_back(line);
    }
    return true;
  }

 private:
  bool refuse(SyntaxProblem& problem, const char* message, std::size_t at) {
    problem = {message, {source_, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + 1)}, {}};
    return false;
  }

  bool take_line(PythonLine& line, std::vector<Comment>& comments, SyntaxProblem& problem) {
    std::vector<std::size_t> brackets;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\n') {
        ++number_;
        ++at_;
        if (brackets.empty()) return true;
        continue;
      }
      if (c == '\\' && at_ + 1 < text_.size()) {
        const bool windows = text_.substr(at_ + 1, 2) == "\r\n";
        number_ += windows || text_[at_ + 1] == '\n';
        at_ += windows ? 3 : 2;
        line.end = at_;
        continue;
      }
      if (c == '#') {
        const std::size_t begin = at_;
        at_ = std::min(text_.find('\n', at_), text_.size());
        const std::size_t end = at_ > begin && text_[at_ - 1] == '\r' ? at_ - 1 : at_;
        comments.push_back({{source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)},
                            number_,
                            line.end == line.begin && brackets.empty()});
        continue;
      }
      if (c == '"' || c == '\'') {
        if (!take_string(problem)) return false;
        line.end = at_;
        continue;
      }
      if (c == ';' && brackets.empty()) {  // a further statement on the line
        ++at_;
        return true;
      }
      if (c == '(' || c == '[' || c == '{') {
        brackets.push_back(at_);
        if (brackets.size() > 1000) return refuse(problem, "brackets are nested too deeply", at_);
      } else if (c == ')' || c == ']' || c == '}') {
        if (brackets.empty()) return refuse(problem, "this bracket was not opened", at_);
        const char opened = text_[brackets.back()];
        if ((opened == '(') != (c == ')') || (opened == '[') != (c == ']'))
          return refuse(problem, "this bracket closes one of another kind", at_);
        brackets.pop_back();
      }
      ++at_;
      if (c != ' ' && c != '\t' && c != '\r') line.end = at_;
    }
    if (!brackets.empty()) return refuse(problem, "this bracket is not closed", brackets.back());
    return true;
  }

  bool take_string(SyntaxProblem& problem) {
    const std::size_t begin = at_;
    const char quote = text_[at_];
    const bool triple = text_.substr(at_).starts_with(std::string(3, quote));
    at_ += triple ? 3 : 1;
    while (at_ < text_.size()) {
      if (text_[at_] == '\\') {
        number_ += at_ + 1 < text_.size() && text_[at_ + 1] == '\n';
        at_ = std::min(at_ + 2, text_.size());
        continue;
      }
      if (text_[at_] == '\n') {
        if (!triple) break;
        ++number_;
      }
      if (text_[at_] == quote && (!triple || text_.substr(at_).starts_with(std::string(3, quote)))) {
        at_ += triple ? 3 : 1;
        return true;
      }
      ++at_;
    }
    return refuse(problem, "the string is not closed", begin);
  }

  SourceId source_;
  std::string_view text_;
  std::size_t at_;
  std::uint32_t number_ = 1;
};

}  // namespace

std::optional<PythonLines> split_python_lines(SourceId source, const SourceMap& sources,
                                              SyntaxProblem& problem) {
  const std::string_view text = sources[source].bytes();
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto at = static_cast<std::uint32_t>(nul);
    problem = {"a NUL byte stands in the text; this looks like a binary file", {source, at, at + 1}, {}};
    return std::nullopt;
  }
  PythonLines lines;
  if (!LineSplitter(source, text).run(lines, problem)) return std::nullopt;
  return lines;
}

}  // namespace capstan
