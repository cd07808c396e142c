#include "grammar/arguments/python_assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "grammar/arguments/python_literal.h"

namespace capstan {
namespace {

constexpr int kMaxCalls = 16;  // constructors inside constructors

/// A statement: one line, or several joined by brackets, strings or backslashes.
struct LogicalLine {
  std::size_t begin = 0, end = 0;  ///< without indentation, trailing blanks and trailing comment
  std::size_t indent = 0;
  bool goes_on = false;  ///< behind a `;`: belongs to what the statement before it belongs to
};

class LineSplitter {
 public:
  LineSplitter(SourceId source, std::string_view text) : source_(source), text_(text) {}

  bool run(std::vector<LogicalLine>& lines, std::vector<Comment>& comments, SyntaxProblem& problem) {
    std::size_t indent = 0;
    while (at_ < text_.size()) {
      const std::size_t start = at_;
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      const bool goes_on = start > 0 && text_[start - 1] == ';';
      if (!goes_on) indent = at_ - start;
      LogicalLine line{at_, at_, indent, goes_on};
      if (!take_line(line, comments, problem)) return false;
      if (line.end > line.begin) lines.push_back(line);
    }
    return true;
  }

 private:
  bool refuse(SyntaxProblem& problem, const char* message, std::size_t at) {
    problem = {message, {source_, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + 1)}, {}};
    return false;
  }

  bool take_line(LogicalLine& line, std::vector<Comment>& comments, SyntaxProblem& problem) {
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
        number_ += text_[at_ + 1] == '\n';
        at_ += 2;
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
  std::size_t at_ = 0;
  std::uint32_t number_ = 1;
};

bool is_name_start(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_name(char c) {
  return is_name_start(c) || (c >= '0' && c <= '9');
}

/// `a.b.c` at the beginning of the text: its parts and its length.
std::vector<std::string> dotted_name(std::string_view text, std::size_t& length) {
  std::vector<std::string> parts;
  length = 0;
  while (length < text.size() && is_name_start(text[length])) {
    const std::size_t begin = length;
    while (length < text.size() && is_name(text[length])) ++length;
    parts.emplace_back(text.substr(begin, length - begin));
    if (length + 1 >= text.size() || text[length] != '.' || !is_name_start(text[length + 1])) break;
    ++length;
  }
  return parts;
}

bool starts_with_word(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view wanted) {
    return text.starts_with(wanted) && (text.size() == wanted.size() || !is_name(text[wanted.size()]));
  });
}

/// The last character of the string that begins at `at`.
std::size_t string_end(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const bool triple = text.substr(at).starts_with(std::string(3, quote));
  std::size_t end = at + (triple ? 3 : 1);
  while (end < text.size()) {
    if (text[end] == '\\')
      end += 2;
    else if (triple ? text.substr(end).starts_with(std::string(3, quote)) : text[end] == quote)
      return end + (triple ? 2 : 0);
    else
      ++end;
  }
  return text.size();
}

/// What stands outside strings, brackets and comments of a statement.
class TopLevel {
 public:
  explicit TopLevel(std::string_view text) {
    std::size_t depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      const char c = text[i];
      if (c == '"' || c == '\'') {
        i = string_end(text, i);
      } else if (c == '#') {
        i = std::min(text.find('\n', i), text.size());
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if (c == ')' || c == ']' || c == '}') {
        if (depth > 0) --depth;
      } else if (depth == 0) {
        if (c == ',') commas.push_back(i);
        if (c == ':') colons.push_back(i);
        if (c == '=') {
          const char before = i > 0 ? text[i - 1] : ' ', after = i + 1 < text.size() ? text[i + 1] : ' ';
          if (after == '=') {
            ++i;
          } else if (std::string_view("<>!:").find(before) != std::string_view::npos &&
                     !(i > 1 && text[i - 2] == before)) {
            continue;
          } else {
            augmented = augmented || std::string_view("+-*/%|&^@<>").find(before) != std::string_view::npos;
            equals.push_back(i);
          }
        }
      }
    }
  }

  std::vector<std::size_t> commas, colons, equals;
  bool augmented = false;
};

struct Range {
  std::size_t begin = 0, end = 0;
};

class RecipeReader {
 public:
  RecipeReader(SourceId source, const SourceMap& sources)
      : source_(source), sources_(sources), text_(sources[source].bytes()) {}

  void run(const std::vector<LogicalLine>& lines) {
    for (const LogicalLine& line : lines) find_constant(line);
    conditional_.reset();
    functions_.clear();
    for (const LogicalLine& line : lines) take_line(line);
  }

  struct Found {
    std::string variable, function;
    PythonAssignment assignment;
  };
  std::vector<Found> found;
  std::map<std::pair<std::string, std::string>, Span> calls;  ///< by function and variable
  std::map<std::string, Span> function_places;

 private:
  struct Open {
    std::size_t indent;
    std::string name, header;
  };

  Span span(std::size_t begin, std::size_t end) const {
    return {source_, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  }
  std::string_view text(Range range) const { return text_.substr(range.begin, range.end - range.begin); }
  Range trim(Range range) const {
    const auto blank = [&](std::size_t at) {
      return std::string_view(" \t\r\n\\").find(text_[at]) != std::string_view::npos;
    };
    while (range.begin < range.end && (blank(range.begin) || text_[range.begin] == '#')) {
      if (text_[range.begin] == '#') range.begin = std::min(text_.find('\n', range.begin), range.end);
      if (range.begin < range.end) ++range.begin;
    }
    while (range.end > range.begin && blank(range.end - 1)) --range.end;
    return range;
  }
  std::string function() const { return functions_.empty() ? "" : functions_.back().name; }

  /// Follows functions and conditions; gives what is left of the line, and nothing for a mere header.
  std::optional<Range> enter(const LogicalLine& line) {
    const Range whole{line.begin, line.end};
    const std::string_view statement = text(whole);
    if (!line.goes_on) {
      if (conditional_ && line.indent <= *conditional_) conditional_.reset();
      while (!functions_.empty() && line.indent <= functions_.back().indent) functions_.pop_back();
    }
    const bool defines = starts_with_word(statement, {"def", "async", "class"});
    const bool branches = starts_with_word(
        statement, {"if", "elif", "else", "for", "while", "try", "except", "finally", "match", "case"});
    if (!defines && !branches && !starts_with_word(statement, {"with"})) return whole;
    const TopLevel top(statement);
    if (branches && !conditional_) conditional_ = line.indent;
    if (starts_with_word(statement, {"def", "async"})) {
      const std::size_t def = statement.find("def");
      std::size_t begin = def == std::string_view::npos ? statement.size() : def + 3, length = 0;
      while (begin < statement.size() && statement[begin] == ' ') ++begin;
      const auto name = dotted_name(statement.substr(std::min(begin, statement.size())), length);
      functions_.push_back({line.indent, name.empty() ? "?" : name.front(), std::string(statement)});
      if (!name.empty())
        function_places.emplace(name.front(), span(line.begin + begin, line.begin + begin + length));
    }
    if (top.colons.empty()) return std::nullopt;
    const Range rest = trim({line.begin + top.colons.back() + 1, line.end});
    if (rest.begin >= rest.end) return std::nullopt;
    return rest;
  }

  void find_constant(const LogicalLine& line) {
    const auto range = enter(line);
    if (!range) return;
    const std::string_view statement = text(*range);
    const TopLevel top(statement);
    if (top.equals.empty()) return;
    std::size_t length = 0;
    const auto name = dotted_name(statement, length);
    if (name.size() != 1) return;
    Constant& constant = constants_[name.front()];
    ++constant.count;
    const Range value = trim({range->begin + top.equals.front() + 1, range->end});
    const bool plain = top.equals.size() == 1 && !top.augmented && !conditional_ && top.commas.empty() &&
                       trim({range->begin + length, range->begin + top.equals.front()}).begin >=
                           trim({range->begin + length, range->begin + top.equals.front()}).end;
    std::string why;
    if (plain) constant.value = parse_python_literal(span(value.begin, value.end), sources_, why);
    constant.function = function();
  }

  void take_line(const LogicalLine& line) {
    const auto range = enter(line);
    if (!range) return;
    const std::string_view statement = text(*range);
    if (statement.starts_with("setattr")) return take_setattr(*range);
    const TopLevel top(statement);
    if (top.equals.empty()) return;
    const Range value = trim({range->begin + top.equals.back() + 1, range->end});
    for (std::size_t i = 0; i < top.equals.size(); ++i) {
      std::size_t end = top.equals[i];
      if (top.augmented)
        while (end > 0 && std::string_view("+-*/%|&^@<>").find(statement[end - 1]) != std::string_view::npos)
          --end;
      const std::size_t begin = i == 0 ? 0 : top.equals[i - 1] + 1;
      take_target(trim({range->begin + begin, range->begin + end}), value, top.augmented);
    }
  }

  /// Parts between commas outside brackets; a trailing comma makes no part.
  std::vector<Range> parts_of(Range range) const {
    const TopLevel top(text(range));
    std::vector<Range> out;
    std::size_t begin = range.begin;
    for (const std::size_t comma : top.commas) {
      out.push_back(trim({begin, range.begin + comma}));
      begin = range.begin + comma + 1;
    }
    const Range last = trim({begin, range.end});
    if (last.end > last.begin) out.push_back(last);
    return out;
  }
  Range without_parentheses(Range range) const {
    const std::string_view all = text(range);
    if (all.size() < 2 || (all.front() != '(' && all.front() != '[') ||
        (all.back() != ')' && all.back() != ']'))
      return range;
    return trim({range.begin + 1, range.end - 1});
  }

  void take_target(Range target, Range value, bool augmented) {
    const TopLevel top(text(target));
    const bool bracketed =
        !text(target).empty() && (text(target).front() == '(' || text(target).front() == '[');
    if (!top.commas.empty() || bracketed) {
      const auto targets = parts_of(bracketed ? without_parentheses(target) : target);
      auto values = parts_of(value);
      if (values.size() == 1) values = parts_of(without_parentheses(value));
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const bool paired = values.size() == targets.size();
        take_one(targets[i], paired ? values[i] : value,
                 paired ? "" : "a part of a value that is no literal");
      }
      return;
    }
    Range name = target;  // `cfg.x: int = 1`
    if (!top.colons.empty()) name = trim({target.begin, target.begin + top.colons.front()});
    take_one(name, value, augmented ? "an augmented assignment" : "");
  }

  void take_one(Range target, Range value, std::string reason) {
    std::size_t length = 0;
    const auto parts = dotted_name(text(target), length);
    if (parts.empty()) return;
    if (length < target.end - target.begin) {
      if (text_[target.begin + length] != '[') return;
      if (reason.empty()) reason = "an assignment to an element";
    }
    if (parts.size() == 1) {
      if (reason.empty() && text(value).find('(') != std::string_view::npos) {
        calls[{function(), parts[0]}] = span(value.begin, value.end);
        take_arguments(parts[0], {}, value, 0);
      }
      return;
    }
    Found entry{parts[0], function(), {}};
    entry.assignment.path.assign(parts.begin() + 1, parts.end());
    entry.assignment.key_span = span(target.begin, target.begin + length);
    if (reason.empty() && take_arguments(parts[0], entry.assignment.path, value, 0)) return;
    add(std::move(entry), value, std::move(reason));
  }

  /// `Name(key=value, ...)` with a class name: each argument is an assignment. False for other values.
  bool take_arguments(const std::string& variable, const std::vector<std::string>& path, Range value,
                      int depth) {
    std::size_t length = 0;
    const auto name = dotted_name(text(value), length);
    if (name.empty() || depth > kMaxCalls || conditional_) return false;
    const char first = name.back().front();
    const Range call = trim({value.begin + length, value.end});
    if (first < 'A' || first > 'Z' || text(call).size() < 2 || text(call).front() != '(') return false;
    if (matching(call.begin) + 1 != call.end) return false;
    const auto arguments = parts_of({call.begin + 1, call.end - 1});
    if (path.empty() && arguments.empty()) return false;
    for (const Range& argument : arguments) {
      const TopLevel top(text(argument));
      std::size_t key_length = 0;
      const auto key = dotted_name(text(argument), key_length);
      Found entry{variable, function(), {}};
      entry.assignment.path = path;
      if (top.equals.empty() || key.size() != 1 ||
          trim({argument.begin + key_length, argument.begin + top.equals.front()}).begin <
              trim({argument.begin + key_length, argument.begin + top.equals.front()}).end) {
        if (path.empty()) continue;
        entry.assignment.key_span = span(argument.begin, argument.end);
        add(std::move(entry), argument, "an argument without a name");
        continue;
      }
      entry.assignment.path.push_back(key.front());
      entry.assignment.key_span = span(argument.begin, argument.begin + key_length);
      const Range inner = trim({argument.begin + top.equals.front() + 1, argument.end});
      if (take_arguments(variable, entry.assignment.path, inner, depth + 1)) continue;
      add(std::move(entry), inner, "");
    }
    return true;
  }

  /// The bracket that closes the one at `open`.
  std::size_t matching(std::size_t open) const {
    std::size_t depth = 0;
    for (std::size_t i = open; i < text_.size(); ++i) {
      const char c = text_[i];
      if (c == '"' || c == '\'') {
        i = string_end(text_, i);
      } else if (c == '#') {
        i = std::min(text_.find('\n', i), text_.size());
      } else if (c == '(' || c == '[' || c == '{') {
        ++depth;
      } else if ((c == ')' || c == ']' || c == '}') && --depth == 0) {
        return i;
      }
    }
    return text_.size();
  }

  void take_setattr(Range range) {
    const std::size_t open = text(range).find('(');
    if (open == std::string_view::npos) return;
    const auto arguments = parts_of({range.begin + open + 1, range.end - 1});
    if (arguments.size() != 3) return;
    std::size_t length = 0;
    const auto owner = dotted_name(text(arguments[0]), length);
    if (owner.empty() || length < arguments[0].end - arguments[0].begin) return;
    std::string why;
    const auto name = parse_python_literal(span(arguments[1].begin, arguments[1].end), sources_, why);
    Found entry{owner[0], function(), {}};
    entry.assignment.path.assign(owner.begin() + 1, owner.end());
    entry.assignment.key_span = span(arguments[0].begin, arguments[1].end);
    const bool named = name && name->scalar.kind() == Value::Kind::string;
    if (named) entry.assignment.path.push_back(name->scalar.string());
    if (entry.assignment.path.empty()) return;
    add(std::move(entry), arguments[2], named ? "" : "set under a name that is not known");
  }

  void add(Found entry, Range value, std::string reason) {
    if (conditional_) reason = "a value set under a condition or in a loop";
    SyntaxNode& node = entry.assignment.value;
    if (reason.empty()) {
      if (const SyntaxNode* constant = constant_named(text(value))) {
        node = *constant;
        found.push_back(std::move(entry));
        return;
      }
      if (auto literal = parse_python_literal(span(value.begin, value.end), sources_, reason)) {
        node = std::move(*literal);
        found.push_back(std::move(entry));
        return;
      }
    }
    node.kind = SyntaxNode::Kind::unsupported;
    node.what = std::move(reason);
    node.span = span(value.begin, value.end);
    found.push_back(std::move(entry));
  }

  const SyntaxNode* constant_named(std::string_view name) const {
    const auto known = constants_.find(name);
    if (known == constants_.end() || known->second.count != 1 || !known->second.value) return nullptr;
    if (!known->second.function.empty() && known->second.function != function()) return nullptr;
    for (const Open& open : functions_) {  // a parameter of that name is another thing
      for (std::size_t at = open.header.find(name); at != std::string::npos;
           at = open.header.find(name, at + 1)) {
        const bool begins = at == 0 || !is_name(open.header[at - 1]);
        const std::size_t end = at + name.size();
        if (begins && (end >= open.header.size() || !is_name(open.header[end]))) return nullptr;
      }
    }
    return &*known->second.value;
  }

  struct Constant {
    int count = 0;
    std::optional<SyntaxNode> value;
    std::string function;
  };

  SourceId source_;
  const SourceMap& sources_;
  std::string_view text_;
  std::optional<std::size_t> conditional_;  ///< indentation of the outermost open condition or loop
  std::vector<Open> functions_;
  std::map<std::string, Constant, std::less<>> constants_;
};

}  // namespace

std::optional<PythonRecipe> parse_python_recipe(SourceId source, const SourceMap& sources,
                                                const std::string& run, SyntaxProblem& problem) {
  const std::string_view text = sources[source].bytes();
  PythonRecipe recipe;
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto at = static_cast<std::uint32_t>(nul);
    problem = {"a NUL byte stands in the text; this looks like a binary file", {source, at, at + 1}, {}};
    return std::nullopt;
  }
  std::vector<LogicalLine> lines;
  if (!LineSplitter(source, text).run(lines, recipe.comments, problem)) return std::nullopt;
  RecipeReader reader(source, sources);
  reader.run(lines);
  std::map<std::string, std::size_t> uses;
  for (const auto& entry : reader.found) ++uses[entry.variable];
  for (const auto& [variable, count] : uses) {
    if (recipe.variable.empty() || count > uses[recipe.variable]) recipe.variable = variable;
  }
  std::set<std::string> functions;
  for (const auto& entry : reader.found) {
    if (entry.variable != recipe.variable || entry.function.empty()) continue;
    if (!functions.insert(entry.function).second) continue;
    const bool wanted = run.empty() ? recipe.function.empty() : entry.function == run;
    if (wanted)
      recipe.function = entry.function;
    else
      recipe.further.push_back({entry.function, reader.function_places[entry.function]});
  }
  if (!run.empty() && recipe.function != run) {
    std::string names;
    for (const auto& function : recipe.further) names += (names.empty() ? "`" : ", `") + function.name + "`";
    problem = {names.empty() ? fmt::format("no function `{}` assigns to a config here", run)
                             : fmt::format("no function `{}` assigns to a config here; {} do", run, names),
               {source, 0, 0},
               {}};
    return std::nullopt;
  }
  for (auto& entry : reader.found) {
    if (entry.variable == recipe.variable && (entry.function.empty() || entry.function == recipe.function))
      recipe.assignments.push_back(std::move(entry.assignment));
  }
  for (const std::string& function : {std::string(), recipe.function}) {
    if (const auto call = reader.calls.find({function, recipe.variable}); call != reader.calls.end())
      recipe.base = call->second;
  }
  return recipe;
}

}  // namespace capstan
