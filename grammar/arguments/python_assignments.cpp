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
#include "grammar/arguments/python_names.h"
#include "grammar/arguments/python_recipe_choice.h"
#include "grammar/arguments/python_statement.h"
#include "grammar/arguments/python_syntax.h"
#include "grammar/arguments/python_text.h"

namespace capstan {
namespace {

constexpr int kMaxCalls = 16;  // constructors inside constructors

using Found = PythonFindings::Found;

/// By the name alone, as Python's style has it.
bool is_class(const std::vector<std::string>& name) {
  return !name.empty() && name.back().front() >= 'A' && name.back().front() <= 'Z';
}

class RecipeReader {
 public:
  RecipeReader(SourceId source, const SourceMap& sources) : sources_(sources), text_(source, sources) {}

  /// False (with a problem) for statements that are no Python.
  bool run(const std::vector<PythonLine>& lines, SyntaxProblem& problem) {
    for (const PythonLine& line : lines) find_constant(line);
    conditional_.reset();
    functions_.clear();
    names_ = {};
    for (const PythonLine& line : lines) {
      if (take_line(line, problem)) continue;
      return false;
    }
    return true;
  }

  PythonFindings findings;

 private:
  struct Open {
    std::size_t indent;
    std::string name, header;
    bool left = false;  ///< behind a `return` that always comes: nothing of it runs any more
  };

  std::vector<std::string> open_functions() const {
    std::vector<std::string> names;
    for (const Open& open : functions_) names.push_back(open.name);
    return names;
  }
  /// What the parts of a path begin with; null when it is no name of a part of the config.
  const PythonPlace* named(const std::string& name) const {
    if (findings.parameters.contains({function(), name}) && names_.find_own(function(), name) == nullptr)
      return nullptr;
    return names_.find(open_functions(), name);
  }
  /// The place that a whole text names (`cfg.model`, `m.x`); nothing for other expressions.
  std::optional<PythonPlace> place_of(PythonRange range) const {
    const auto [parts, length] = read_python_target(text_.of(range));
    if (parts.empty() || length < range.end - range.begin) return std::nullopt;
    PythonPlace place{parts.front(), {}};
    if (const PythonPlace* const known = named(parts.front())) place = *known;
    if (!place.any) place.path.insert(place.path.end(), parts.begin() + 1, parts.end());
    return place;
  }
  /// Variables that a text names outside of its strings, with what they stand for.
  std::set<std::string> variables_in(PythonRange range) const {
    std::set<std::string> variables;
    for (std::size_t at = range.begin; at < range.end;) {
      const char c = text_.bytes()[at];
      if (c == '"' || c == '\'') {
        at = python_string_end(text_.bytes(), at) + 1;
      } else if (c == '#') {
        at = text_.bytes().find('\n', at);
      } else if (const auto [parts, length] = read_python_name(text_.bytes().substr(at, range.end - at));
                 length > 0) {
        const PythonPlace* const known = named(parts.front());
        if (at == range.begin || text_.bytes()[at - 1] != '.')
          variables.insert(known != nullptr ? known->variable : parts.front());
        at += length;
      } else {
        ++at;
      }
    }
    return variables;
  }
  std::string function() const { return functions_.empty() ? "" : functions_.back().name; }

  /// Follows functions and conditions; gives what is left of the line, and nothing for a mere header.
  std::optional<PythonRange> enter(const PythonLine& line) {
    const PythonRange whole{line.begin, line.end};
    const std::string_view statement = text_.of(whole);
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
    if (!defines)
      name_parts_of_header({line.begin, top.colons.empty() ? line.end : line.begin + top.colons.back()});
    if (starts_with_python_word(statement, {"def", "async"})) {
      const std::size_t def = statement.find("def");
      std::size_t begin = def == std::string_view::npos ? statement.size() : def + 3;
      while (begin < statement.size() && statement[begin] == ' ') ++begin;
      const PythonPath name = read_python_name(statement.substr(std::min(begin, statement.size())));
      functions_.push_back(
          {line.indent, name.parts.empty() ? "?" : name.parts.front(), std::string(statement)});
      if (!name.parts.empty())
        findings.function_places.emplace(name.parts.front(),
                                         text_.span(line.begin + begin, line.begin + begin + name.length));
      if (!name.parts.empty())
        find_parameters(name.parts.front(), line.begin + begin + name.length, line.end);
    }
    if (top.colons.empty()) return std::nullopt;
    const PythonRange rest = text_.trim({line.begin + top.colons.back() + 1, line.end});
    if (rest.begin >= rest.end) return std::nullopt;
    return rest;
  }

  /// `for m in (cfg.model, cfg.ddp):`, `with edit(cfg) as c:`: the name is some part of the config.
  void name_parts_of_header(PythonRange header) {
    const std::string_view all = text_.of(header);
    const bool loops = starts_with_python_word(all, {"for"});
    const std::size_t word = all.find(loops ? " in " : " as ");
    if (word == std::string_view::npos || (!loops && !starts_with_python_word(all, {"with"}))) return;
    const PythonRange left = text_.trim({header.begin + (loops ? 3 : 4), header.begin + word});
    const PythonRange right = text_.trim({header.begin + word + 4, header.end});
    for (const std::string& variable : variables_in(loops ? right : left)) {
      for (const PythonRange& target : text_.parts_of(text_.without_parentheses(loops ? left : right))) {
        const auto [parts, length] = read_python_name(text_.of(target));
        if (parts.size() == 1 && length == target.end - target.begin)
          names_.bind(function(), parts.front(), {variable, {}, true, true});
      }
    }
  }

  void find_parameters(const std::string& function, std::size_t begin, std::size_t end) {
    const PythonRange list = text_.trim({begin, end});
    if (list.begin >= list.end || text_.bytes()[list.begin] != '(') return;
    const std::size_t close = text_.matching(list.begin);
    if (close >= list.end) return;
    for (const PythonRange& parameter : text_.parts_of({list.begin + 1, close})) {
      const auto [name, length] = read_python_name(text_.of(parameter));
      if (name.size() == 1)
        findings.parameters.emplace(std::pair(function, name.front()),
                                    text_.span(parameter.begin, parameter.begin + length));
    }
  }

  void find_constant(const PythonLine& line) {
    const auto range = enter(line);
    if (!range) return;
    const std::string_view statement = text_.of(*range);
    const PythonTopLevel top(statement);
    if (top.equals.empty()) return;
    const auto [name, length] = read_python_name(statement);
    if (name.size() != 1) return;
    Constant& constant = constants_[name.front()];
    ++constant.count;
    const PythonRange value = text_.trim({range->begin + top.equals.front() + 1, range->end});
    const bool plain = top.equals.size() == 1 && !top.augmented && !conditional_ && top.commas.empty() &&
                       text_.trim({range->begin + length, range->begin + top.equals.front()}).begin >=
                           text_.trim({range->begin + length, range->begin + top.equals.front()}).end;
    std::string why;
    if (plain)
      constant.value =
          parse_python_literal(text_.span(value.begin, value.end), sources_, why, findings.repeated_keys);
    constant.function = function();
  }

  bool take_line(const PythonLine& line, SyntaxProblem& problem) {
    const auto range = enter(line);
    if (!range) return true;
    const std::string_view statement = text_.of(*range);
    const PythonTopLevel top(statement);
    if (const auto fault = find_python_fault(statement, top)) {
      problem = {fault->message, text_.span(range->begin + fault->begin, range->begin + fault->end), {}};
      return false;
    }
    if (std::any_of(functions_.begin(), functions_.end(), [](const Open& open) { return open.left; }))
      return true;
    if (!functions_.empty() && !conditional_ && starts_with_python_word(statement, {"return", "raise"}))
      functions_.back().left = true;
    if (starts_with_python_word(statement, {"return"}))
      take_return(text_.trim({range->begin + 6, range->end}));
    else if (starts_with_python_word(statement, {"setattr"}))
      take_setattr(*range);
    else if (starts_with_python_word(statement, {"del"}))
      take_deletion({range->begin + 3, range->end});
    else if (top.equals.empty())
      take_expression(*range, top);
    else
      take_assignment(*range, top);
    return true;
  }

  void take_assignment(PythonRange range, const PythonTopLevel& top) {
    const std::string_view statement = text_.of(range);
    const PythonRange value = text_.trim({range.begin + top.equals.back() + 1, range.end});
    for (std::size_t i = 0; i < top.equals.size(); ++i) {
      std::size_t end = top.equals[i];
      if (top.augmented)
        while (end > 0 && std::string_view("+-*/%|&^@<>").find(statement[end - 1]) != std::string_view::npos)
          --end;
      const std::size_t begin = i == 0 ? 0 : top.equals[i - 1] + 1;
      take_target(text_.trim({range.begin + begin, range.begin + end}), value, top.augmented);
    }
    // What a function that is given the config gives back is no concern here; what it does to it is. An
    // object that is made from it holds it.
    const auto [callee, length] = read_python_name(text_.of(value));
    if (!is_class(callee)) take_call(value);
  }

  /// `return cfg`, `return Container(...)`, `return finish(cfg)`.
  void take_return(PythonRange value) {
    const PythonRange inner = text_.without_parentheses(value);
    if (const auto place = place_of(inner)) {
      if (place->path.empty() && !place->any)
        findings.returns.push_back({place->variable, function(), conditional_.has_value()});
      return;
    }
    const std::size_t before = findings.found.size();
    take_arguments(kPythonReturned, {}, value, 0);
    if (findings.found.size() == before) {
      const auto [callee, length] = read_python_name(text_.of(value));
      if (!is_class(callee)) take_call(value);
      return;
    }
    findings.calls[{function(), kPythonReturned}] = text_.span(value);
    findings.returns.push_back({kPythonReturned, function(), false});
  }

  /// `prepare(cfg)`, or `cfg.model.x: 3`, which declares a type.
  void take_expression(PythonRange range, const PythonTopLevel& top) {
    if (top.colons.empty()) return take_call(range);
    const auto place = place_of(text_.trim({range.begin, range.begin + top.colons.front()}));
    if (!place || place->path.empty()) return;
    Found entry{place->variable, function(), {}};
    entry.assignment.path = place->path;
    entry.assignment.key_span = text_.span(range.begin, range.begin + top.colons.front());
    add(std::move(entry), text_.trim({range.begin + top.colons.front() + 1, range.end}),
        "`:` states a type and sets nothing; an `=` is missing");
  }

  void take_target(PythonRange target, PythonRange value, bool augmented) {
    const PythonTopLevel top(text_.of(target));
    const bool bracketed =
        !text_.of(target).empty() && (text_.of(target).front() == '(' || text_.of(target).front() == '[');
    if (!top.commas.empty() || bracketed) {
      const auto targets = text_.parts_of(bracketed ? text_.without_parentheses(target) : target);
      auto values = text_.parts_of(value);
      if (values.size() == 1) values = text_.parts_of(text_.without_parentheses(value));
      for (std::size_t i = 0; i < targets.size(); ++i) {
        const bool paired = values.size() == targets.size();
        take_one(targets[i], paired ? values[i] : value,
                 paired ? "" : "a part of a value that is no literal");
      }
      return;
    }
    PythonRange name = target;  // `cfg.x: int = 1`
    if (!top.colons.empty()) name = text_.trim({target.begin, target.begin + top.colons.front()});
    take_one(name, value, augmented ? "an augmented assignment" : "");
  }

  void take_one(PythonRange target, PythonRange value, std::string reason) {
    if (!text_.of(target).empty() && text_.of(target).front() == '*') {  // `*cfg.m.a, b = x`
      target = text_.trim({target.begin + 1, target.end});
      reason = "a part of a value that is no literal";
    }
    auto [parts, length] = read_python_target(text_.of(target));
    const bool whole = length == target.end - target.begin;
    if (parts.empty() || (!whole && text_.bytes()[target.begin + length] != '['))
      return take_odd_target(target, value);
    if (!whole && reason.empty()) reason = "an assignment to an element";
    if (parts.size() == 1 && whole) return take_name(parts[0], value, reason);
    Found entry{parts[0], function(), {}};
    std::vector<std::string> path(parts.begin() + 1, parts.end());
    bool any = !whole && parts.size() < 3;  // an element of the config or of a section may be any key
    if (const PythonPlace* const known = named(parts[0])) {
      entry.variable = known->variable;
      path.insert(path.begin(), known->path.begin(), known->path.end());
      any = known->any || (!whole && path.size() < 2);
      if (known->conditional && reason.empty()) reason = "set by a name that is given under a condition";
    }
    if (!any) entry.assignment.path = path;
    entry.assignment.key_span = text_.span(target.begin, whole ? target.begin + length : target.end);
    if (whole && !any && take_part(entry, value)) return;
    if (reason.empty() && take_arguments(entry.variable, path, value, 0)) return;
    add(std::move(entry), value, std::move(reason));
  }

  /// A plain name: what it stands for from here on.
  void take_name(const std::string& name, PythonRange value, const std::string& reason) {
    const auto place = reason.empty() ? place_of(value) : std::nullopt;
    if (place) {
      PythonPlace named_here = *place;
      named_here.conditional = named_here.conditional || conditional_.has_value();
      return names_.bind(function(), name, std::move(named_here));
    }
    if (conditional_) {
      if (const PythonPlace* const known = names_.find_own(function(), name)) {
        PythonPlace doubtful = *known;
        doubtful.conditional = true;
        names_.bind(function(), name, std::move(doubtful));
      }
    } else {
      names_.forget(function(), name);
    }
    if (!reason.empty() || text_.of(value).find('(') == std::string_view::npos) return;
    findings.calls[{function(), name}] = text_.span(value.begin, value.end);
    take_arguments(name, {}, value, 0);
  }

  /// Follows names when a part of the config becomes another object. True when it stays the one it is.
  bool take_part(const Found& entry, PythonRange value) {
    const auto given = place_of(value);
    if (given && !given->any && given->variable == entry.variable && given->path == entry.assignment.path)
      return true;
    names_.replace(entry.variable, entry.assignment.path);
    // `cfg.model = m`: from here on `m` is that section.
    if (given && given->path.empty() && !given->any && constant_named(text_.of(value)) == nullptr)
      names_.bind(function(), given->variable,
                  {entry.variable, entry.assignment.path, false, conditional_.has_value()});
    return false;
  }

  /// `vars(cfg)["x"] = 1`, `f(cfg).x = 1`: some key of what it names.
  void take_odd_target(PythonRange target, PythonRange value) {
    for (const std::string& variable : variables_in(target)) {
      Found entry{variable, function(), {}};
      entry.assignment.key_span = text_.span(target.begin, target.end);
      add(std::move(entry), value, "its target is no plain path");
    }
  }

  /// `Name(key=value, ...)` with a class name: each argument is an assignment. False for other values.
  bool take_arguments(const std::string& variable, const std::vector<std::string>& path, PythonRange value,
                      int depth) {
    const auto [name, length] = read_python_name(text_.of(value));
    if (name.empty() || depth > kMaxCalls || conditional_) return false;
    const PythonRange call = text_.trim({value.begin + length, value.end});
    if (!is_class(name) || text_.of(call).size() < 2 || text_.of(call).front() != '(') return false;
    if (text_.matching(call.begin) + 1 != call.end) return false;
    const auto arguments = text_.parts_of({call.begin + 1, call.end - 1});
    if (path.empty() && arguments.empty()) return false;
    if (path.size() == 1) {
      Found anew{variable, function(), {}};
      anew.assignment.path = path;
      anew.assignment.key_span = text_.span(value.begin, value.begin + length);
      anew.assignment.anew = true;
      findings.found.push_back(std::move(anew));
    }
    for (const PythonRange& argument : arguments) {
      const PythonTopLevel top(text_.of(argument));
      const auto [key, key_length] = read_python_name(text_.of(argument));
      Found entry{variable, function(), {}};
      entry.assignment.path = path;
      if (top.equals.empty() || key.size() != 1 ||
          text_.trim({argument.begin + key_length, argument.begin + top.equals.front()}).begin <
              text_.trim({argument.begin + key_length, argument.begin + top.equals.front()}).end) {
        if (path.empty()) continue;
        entry.assignment.key_span = text_.span(argument.begin, argument.end);
        add(std::move(entry), argument, "an argument without a name");
        continue;
      }
      entry.assignment.path.push_back(key.front());
      entry.assignment.key_span = text_.span(argument.begin, argument.begin + key_length);
      const PythonRange inner = text_.trim({argument.begin + top.equals.front() + 1, argument.end});
      if (take_arguments(variable, entry.assignment.path, inner, depth + 1)) continue;
      add(std::move(entry), inner, "");
    }
    return true;
  }

  void take_setattr(PythonRange range) {
    const std::size_t open = text_.of(range).find('(');
    if (open == std::string_view::npos) return;
    const auto arguments = text_.parts_of({range.begin + open + 1, range.end - 1});
    if (arguments.size() != 3) return;
    const auto owner = place_of(arguments[0]);
    if (!owner) return take_odd_target(arguments[0], arguments[2]);
    std::string why;
    const auto name = parse_python_literal(text_.span(arguments[1].begin, arguments[1].end), sources_, why,
                                           findings.repeated_keys);
    Found entry{owner->variable, function(), {}};
    entry.assignment.path = owner->path;
    entry.assignment.key_span = text_.span(arguments[0].begin, arguments[1].end);
    const bool has_name = name && name->scalar.kind() == Value::Kind::string;
    if (has_name && !owner->any) entry.assignment.path.push_back(name->scalar.string());
    std::string reason = has_name ? "" : "set under a name that is not known";
    if (has_name && owner->conditional) reason = "set by a name that is given under a condition";
    add(std::move(entry), arguments[2], std::move(reason));
  }

  void take_deletion(PythonRange range) {
    for (const PythonRange& target : text_.parts_of(range)) {
      const auto place = place_of(target);
      if (!place) continue;
      if (const auto [name, length] = read_python_name(text_.of(target));
          name.size() == 1 && length == text_.of(target).size()) {
        names_.forget(function(), name.front());
        continue;
      }
      if (place->path.empty() && !place->any) continue;
      Found entry{place->variable, function(), {}};
      entry.assignment.path = place->path;
      entry.assignment.key_span = text_.span(target.begin, target.end);
      add(std::move(entry), target, "it is deleted");
    }
  }

  /// `prepare(cfg, 1)`, `cfg.model.update(x)`: may change what stands behind the variable.
  void take_call(PythonRange range) {
    const auto [name, length] = read_python_name(text_.of(range));
    const PythonRange list = text_.trim({range.begin + length, range.end});
    if (name.empty() || text_.of(list).size() < 2 || text_.of(list).front() != '(') return;
    if (text_.matching(list.begin) + 1 != list.end) return;
    // These read a config, or train with it as it is.
    static const std::set<std::string_view> kReaders = {
        "return",   "assert",   "yield", "raise", "await",   "not", "print",    "pprint",  "repr",      "len",
        "pretrain", "finetune", "info",  "debug", "warning", "log", "validate", "to_yaml", "print_yaml"};
    if (kReaders.contains(name.back())) return;
    std::set<std::string> variables;
    const auto add_variable = [&](const std::string& front) {
      const PythonPlace* const known = named(front);
      variables.insert(known != nullptr ? known->variable : front);
    };
    if (name.size() > 1) add_variable(name.front());
    for (const PythonRange& argument : text_.parts_of({list.begin + 1, list.end - 1})) {
      const PythonTopLevel top(text_.of(argument));
      const PythonRange value =
          top.equals.empty() ? argument : text_.trim({argument.begin + top.equals.front() + 1, argument.end});
      const auto [parts, size] = read_python_target(text_.of(value));
      if (!parts.empty() && size == value.end - value.begin) add_variable(parts.front());
    }
    for (const std::string& variable : variables)
      findings.changes.push_back({variable, function(), text_.span(range.begin, range.end)});
  }

  void add(Found entry, PythonRange value, std::string reason) {
    if (conditional_) reason = "a value set under a condition or in a loop";
    SyntaxNode& node = entry.assignment.value;
    if (reason.empty()) {
      if (const SyntaxNode* constant = constant_named(text_.of(value))) {
        node = *constant;
        findings.found.push_back(std::move(entry));
        return;
      }
      const Span place = text_.span(value.begin, value.end);
      if (auto literal = parse_python_literal(place, sources_, reason, findings.repeated_keys)) {
        node = std::move(*literal);
        findings.found.push_back(std::move(entry));
        return;
      }
      if (auto list = evaluate_list_expression(text_.of(value))) {  // `[0] * 3 + [1] * 58`
        node.kind = SyntaxNode::Kind::list;
        node.span = place;
        for (const std::int64_t number : *list) {
          node.items.emplace_back();
          node.items.back().scalar = Value(number);
          node.items.back().span = place;
        }
        findings.found.push_back(std::move(entry));
        return;
      }
    }
    node.kind = SyntaxNode::Kind::unsupported;
    node.what = std::move(reason);
    node.span = text_.span(value.begin, value.end);
    findings.found.push_back(std::move(entry));
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

  const SourceMap& sources_;
  PythonText text_;
  std::optional<std::size_t> conditional_;  ///< indentation of the outermost open condition or loop
  std::vector<Open> functions_;
  std::map<std::string, Constant, std::less<>> constants_;
  PythonNames names_;
};

}  // namespace

std::optional<PythonRecipe> parse_python_recipe(SourceId source, const SourceMap& sources,
                                                const std::string& run, SyntaxProblem& problem) {
  auto lines = split_python_lines(source, sources, problem);
  if (!lines) return std::nullopt;
  RecipeReader reader(source, sources);
  if (!reader.run(lines->statements, problem)) return std::nullopt;
  std::optional<PythonRecipe> recipe = choose_python_recipe(std::move(reader.findings), run, problem);
  if (recipe) recipe->comments = std::move(lines->comments);
  return recipe;
}

}  // namespace capstan
