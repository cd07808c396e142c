#include "grammar/arguments/python_assignments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "grammar/arguments/list_expression.h"
#include "grammar/arguments/python_lines.h"
#include "grammar/arguments/python_literal.h"
#include "grammar/arguments/python_statement.h"

namespace capstan {
namespace {

constexpr int kMaxCalls = 16;  // constructors inside constructors

struct Range {
  std::size_t begin = 0, end = 0;
};

class RecipeReader {
 public:
  RecipeReader(SourceId source, const SourceMap& sources)
      : source_(source), sources_(sources), text_(sources[source].bytes()) {}

  void run(const std::vector<PythonLine>& lines) {
    for (const PythonLine& line : lines) find_constant(line);
    conditional_.reset();
    functions_.clear();
    for (const PythonLine& line : lines) take_line(line);
  }

  struct Found {
    std::string variable, function;
    PythonAssignment assignment;
    bool of_process = false;  ///< `os.environ["NAME"]`
  };
  struct Change {
    std::string variable, function;
    Span call;
  };
  std::vector<Found> found;
  std::vector<Change> changes;
  std::vector<SyntaxProblem> repeated_keys;
  std::map<std::pair<std::string, std::string>, Span> calls;  ///< by function and variable
  std::map<std::string, Span> function_places;
  std::map<std::pair<std::string, std::string>, Span> parameters;  ///< by function and name

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
  std::optional<Range> enter(const PythonLine& line) {
    const Range whole{line.begin, line.end};
    const std::string_view statement = text(whole);
    if (!line.goes_on) {
      if (conditional_ && line.indent <= *conditional_) conditional_.reset();
      while (!functions_.empty() && line.indent <= functions_.back().indent) functions_.pop_back();
    }
    const bool defines = starts_with_python_word(statement, {"def", "async", "class"});
    const bool branches = starts_with_python_word(
        statement, {"if", "elif", "else", "for", "while", "try", "except", "finally", "match", "case"});
    if (!defines && !branches && !starts_with_python_word(statement, {"with"})) return whole;
    const PythonTopLevel top(statement);
    if (branches && !conditional_) conditional_ = line.indent;
    if (starts_with_python_word(statement, {"def", "async"})) {
      const std::size_t def = statement.find("def");
      std::size_t begin = def == std::string_view::npos ? statement.size() : def + 3;
      while (begin < statement.size() && statement[begin] == ' ') ++begin;
      const PythonPath name = read_python_name(statement.substr(std::min(begin, statement.size())));
      functions_.push_back(
          {line.indent, name.parts.empty() ? "?" : name.parts.front(), std::string(statement)});
      if (!name.parts.empty())
        function_places.emplace(name.parts.front(),
                                span(line.begin + begin, line.begin + begin + name.length));
      if (!name.parts.empty())
        find_parameters(name.parts.front(), line.begin + begin + name.length, line.end);
    }
    if (top.colons.empty()) return std::nullopt;
    const Range rest = trim({line.begin + top.colons.back() + 1, line.end});
    if (rest.begin >= rest.end) return std::nullopt;
    return rest;
  }

  void find_parameters(const std::string& function, std::size_t begin, std::size_t end) {
    const Range list = trim({begin, end});
    if (list.begin >= list.end || text_[list.begin] != '(') return;
    const std::size_t close = matching(list.begin);
    if (close >= list.end) return;
    for (const Range& parameter : parts_of({list.begin + 1, close})) {
      const auto [name, length] = read_python_name(text(parameter));
      if (name.size() == 1)
        parameters.emplace(std::pair(function, name.front()),
                           span(parameter.begin, parameter.begin + length));
    }
  }

  void find_constant(const PythonLine& line) {
    const auto range = enter(line);
    if (!range) return;
    const std::string_view statement = text(*range);
    const PythonTopLevel top(statement);
    if (top.equals.empty()) return;
    const auto [name, length] = read_python_name(statement);
    if (name.size() != 1) return;
    Constant& constant = constants_[name.front()];
    ++constant.count;
    const Range value = trim({range->begin + top.equals.front() + 1, range->end});
    const bool plain = top.equals.size() == 1 && !top.augmented && !conditional_ && top.commas.empty() &&
                       trim({range->begin + length, range->begin + top.equals.front()}).begin >=
                           trim({range->begin + length, range->begin + top.equals.front()}).end;
    std::string why;
    if (plain)
      constant.value = parse_python_literal(span(value.begin, value.end), sources_, why, repeated_keys);
    constant.function = function();
  }

  void take_line(const PythonLine& line) {
    const auto range = enter(line);
    if (!range) return;
    const std::string_view statement = text(*range);
    if (starts_with_python_word(statement, {"setattr"})) return take_setattr(*range);
    if (starts_with_python_word(statement, {"del"})) return take_deletion({range->begin + 3, range->end});
    const PythonTopLevel top(statement);
    if (top.equals.empty()) return take_call(*range);
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
    const PythonTopLevel top(text(range));
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
    const PythonTopLevel top(text(target));
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
    const auto [parts, length] = read_python_target(text(target));
    if (parts.empty()) return;
    const bool of_element = length < target.end - target.begin;
    if (of_element) {
      if (text_[target.begin + length] != '[') return;
      if (reason.empty()) reason = "an assignment to an element";
    }
    if (parts.size() == 1 && !of_element) {
      if (reason.empty() && text(value).find('(') != std::string_view::npos) {
        calls[{function(), parts[0]}] = span(value.begin, value.end);
        take_arguments(parts[0], {}, value, 0);
      }
      return;
    }
    Found entry{parts[0], function(), {}};
    // An element of the config or of a section may be any key.
    if (!of_element || parts.size() > 2) entry.assignment.path.assign(parts.begin() + 1, parts.end());
    entry.assignment.key_span = span(target.begin, of_element ? target.end : target.begin + length);
    if (reason.empty() && take_arguments(parts[0], entry.assignment.path, value, 0)) return;
    add(std::move(entry), value, std::move(reason));
  }

  /// `Name(key=value, ...)` with a class name: each argument is an assignment. False for other values.
  bool take_arguments(const std::string& variable, const std::vector<std::string>& path, Range value,
                      int depth) {
    const auto [name, length] = read_python_name(text(value));
    if (name.empty() || depth > kMaxCalls || conditional_) return false;
    const char first = name.back().front();
    const Range call = trim({value.begin + length, value.end});
    if (first < 'A' || first > 'Z' || text(call).size() < 2 || text(call).front() != '(') return false;
    if (matching(call.begin) + 1 != call.end) return false;
    const auto arguments = parts_of({call.begin + 1, call.end - 1});
    if (path.empty() && arguments.empty()) return false;
    for (const Range& argument : arguments) {
      const PythonTopLevel top(text(argument));
      const auto [key, key_length] = read_python_name(text(argument));
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
        i = python_string_end(text_, i);
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
    const auto [owner, length] = read_python_target(text(arguments[0]));
    if (owner.empty() || length < arguments[0].end - arguments[0].begin) return;
    std::string why;
    const auto name =
        parse_python_literal(span(arguments[1].begin, arguments[1].end), sources_, why, repeated_keys);
    Found entry{owner[0], function(), {}};
    entry.assignment.path.assign(owner.begin() + 1, owner.end());
    entry.assignment.key_span = span(arguments[0].begin, arguments[1].end);
    const bool named = name && name->scalar.kind() == Value::Kind::string;
    if (named) entry.assignment.path.push_back(name->scalar.string());
    add(std::move(entry), arguments[2], named ? "" : "set under a name that is not known");
  }

  void take_deletion(Range range) {
    for (const Range& target : parts_of(range)) {
      const auto [parts, length] = read_python_target(text(target));
      if (parts.size() < 2) continue;
      Found entry{parts[0], function(), {}};
      entry.assignment.path.assign(parts.begin() + 1, parts.end());
      entry.assignment.key_span = span(target.begin, target.end);
      add(std::move(entry), target, "it is deleted");
    }
  }

  /// `prepare(cfg, 1)`, `cfg.model.update(x)`: may change what stands behind the variable.
  void take_call(Range range) {
    const auto [name, length] = read_python_name(text(range));
    const Range list = trim({range.begin + length, range.end});
    if (name.empty() || text(list).size() < 2 || text(list).front() != '(') return;
    if (matching(list.begin) + 1 != list.end) return;
    // These read a config, or train with it as it is.
    static const std::set<std::string_view> kReaders = {
        "return",   "assert",   "yield", "raise", "await",   "not", "print",    "pprint",  "repr",      "len",
        "pretrain", "finetune", "info",  "debug", "warning", "log", "validate", "to_yaml", "print_yaml"};
    if (kReaders.contains(name.back())) return;
    std::set<std::string> variables;
    if (name.size() > 1) variables.insert(name.front());
    for (const Range& argument : parts_of({list.begin + 1, list.end - 1})) {
      const PythonTopLevel top(text(argument));
      const Range value =
          top.equals.empty() ? argument : trim({argument.begin + top.equals.front() + 1, argument.end});
      const auto [parts, size] = read_python_target(text(value));
      if (!parts.empty() && size == value.end - value.begin) variables.insert(parts.front());
    }
    for (const std::string& variable : variables)
      changes.push_back({variable, function(), span(range.begin, range.end)});
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
      const Span place = span(value.begin, value.end);
      if (auto literal = parse_python_literal(place, sources_, reason, repeated_keys)) {
        node = std::move(*literal);
        found.push_back(std::move(entry));
        return;
      }
      if (auto list = evaluate_list_expression(text(value))) {  // `[0] * 3 + [1] * 58`
        node.kind = SyntaxNode::Kind::list;
        node.span = place;
        for (const std::int64_t number : *list) {
          node.items.emplace_back();
          node.items.back().scalar = Value(number);
          node.items.back().span = place;
        }
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
        const bool begins = at == 0 || !is_python_name(open.header[at - 1]);
        const std::size_t end = at + name.size();
        if (begins && (end >= open.header.size() || !is_python_name(open.header[end]))) return nullptr;
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
  auto lines = split_python_lines(source, sources, problem);
  if (!lines) return std::nullopt;
  PythonRecipe recipe;
  recipe.comments = std::move(lines->comments);
  RecipeReader reader(source, sources);
  reader.run(lines->statements);
  for (auto& entry : reader.found) {
    auto& path = entry.assignment.path;
    entry.of_process = entry.variable == "os" && path.size() == 2 && path.front() == "environ";
  }
  std::map<std::string, std::size_t> uses;
  for (const auto& entry : reader.found) {
    if (!entry.of_process && !entry.assignment.path.empty()) ++uses[entry.variable];
  }
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
  const auto is_read = [&](const std::string& function) {
    return function.empty() || function == recipe.function;
  };
  for (auto& entry : reader.found) {
    if (!is_read(entry.function) || (!entry.of_process && entry.variable != recipe.variable)) continue;
    if (entry.of_process) entry.assignment.path.front() = kPythonVariables;
    recipe.assignments.push_back(std::move(entry.assignment));
  }
  for (const std::string& function : {std::string(), recipe.function}) {
    if (const auto call = reader.calls.find({function, recipe.variable}); call != reader.calls.end())
      recipe.base = call->second;
  }
  if (!recipe.base.exists()) {
    if (const auto given = reader.parameters.find({recipe.function, recipe.variable});
        given != reader.parameters.end())
      recipe.base = given->second;
  }
  for (const auto& change : reader.changes) {
    if (change.variable == recipe.variable && is_read(change.function)) recipe.changes.push_back(change.call);
  }
  for (SyntaxProblem& repeated : reader.repeated_keys) {
    const auto holds = [&](const PythonAssignment& assignment) {
      const Span& value = assignment.value.span;
      return value.begin <= repeated.where.begin && repeated.where.end <= value.end;
    };
    const auto same = [&](const SyntaxProblem& earlier) {
      return earlier.where.begin == repeated.where.begin;
    };
    if (std::any_of(recipe.assignments.begin(), recipe.assignments.end(), holds) &&
        std::none_of(recipe.repeated_keys.begin(), recipe.repeated_keys.end(), same))
      recipe.repeated_keys.push_back(std::move(repeated));
  }
  return recipe;
}

}  // namespace capstan
