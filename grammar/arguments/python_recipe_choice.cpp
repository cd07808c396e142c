#include "grammar/arguments/python_recipe_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace capstan {
namespace {

using Found = PythonFindings::Found;

/// `os.environ["NAME"]`
bool is_of_process(const Found& entry) {
  return entry.variable == "os" && entry.assignment.path.size() == 2 &&
         entry.assignment.path.front() == "environ";
}

/// Parts of the config that the entry's assignment may be about.
const std::string* section_of_entry(const Found& entry) {
  const bool names_one = !is_of_process(entry) && !entry.assignment.path.empty();
  return names_one ? &entry.assignment.path.front() : nullptr;
}

/// What a function returns, of the variables that it assigns to; the last unconditional `return` counts.
class Returned {
 public:
  explicit Returned(const PythonFindings& findings) {
    std::set<std::pair<std::string, std::string>> assigned;
    for (const Found& entry : findings.found) assigned.emplace(entry.function, entry.variable);
    for (const bool conditional : {true, false}) {
      for (const PythonFindings::Return& one : findings.returns) {
        if (one.conditional == conditional && assigned.contains({one.function, one.variable}))
          by_function_[one.function] = one.variable;
      }
    }
  }
  const std::string* of(const std::string& function) const {
    const auto found = by_function_.find(function);
    return found == by_function_.end() ? nullptr : &found->second;
  }
  bool is(const std::string& function, const std::string& variable) const {
    const std::string* const own = of(function);
    return own != nullptr && *own == variable;
  }
  bool any(const std::string& variable) const {
    return std::any_of(by_function_.begin(), by_function_.end(),
                       [&](const auto& entry) { return entry.second == variable; });
  }

 private:
  std::map<std::string, std::string> by_function_;
};

/// The variable of the function, or of the whole file when it is empty.
std::string choose_variable(const PythonFindings& findings, const Returned& returned,
                            const std::string& run) {
  if (const std::string* const own = run.empty() ? nullptr : returned.of(run)) return *own;
  std::map<std::string, std::size_t> uses;
  for (const Found& entry : findings.found) {
    if (section_of_entry(entry) != nullptr && (run.empty() || entry.function == run)) ++uses[entry.variable];
  }
  std::string best;
  for (const auto& [variable, count] : uses) {
    const auto rank = [&](const std::string& name, std::size_t number) {
      return std::pair(returned.any(name), number);
    };
    if (best.empty() || rank(variable, count) > rank(best, uses[best])) best = variable;
  }
  return best;
}

/// The first function that returns the variable, else the first that assigns to it; empty: the module.
std::string choose_function(const PythonFindings& findings, const Returned& returned,
                            const std::string& variable) {
  std::string first;
  for (const Found& entry : findings.found) {
    if (entry.variable != variable || entry.function.empty()) continue;
    if (returned.is(entry.function, variable)) return entry.function;
    if (first.empty()) first = entry.function;
  }
  return first;
}

}  // namespace

std::optional<PythonRecipe> choose_python_recipe(PythonFindings findings, const std::string& run,
                                                 SyntaxProblem& problem) {
  const Returned returned(findings);
  PythonRecipe recipe;
  recipe.variable = choose_variable(findings, returned, run);
  recipe.function = run.empty() ? choose_function(findings, returned, recipe.variable) : run;
  const auto is_read = [&](const std::string& function) {
    return function.empty() || function == recipe.function;
  };
  bool has_run = run.empty();
  std::map<std::pair<std::string, std::string>, std::size_t>
      further;  // by function and, of what is read, variable
  for (const Found& entry : findings.found) {
    const std::string* const section = section_of_entry(entry);
    if (section == nullptr) continue;
    const bool is_variable = entry.variable == recipe.variable;
    has_run = has_run || entry.function == run;
    if (is_variable && is_read(entry.function)) continue;
    if (!is_variable && entry.assignment.path.size() < 2) continue;  // sets no key of a section
    // Another function that assigns to a variable of the same name is another recipe whatever it sets.
    const std::string variable = is_read(entry.function) ? entry.variable : std::string();
    const auto [place, is_new] = further.emplace(std::pair(entry.function, variable), recipe.further.size());
    if (is_new) {
      PythonRecipe::Further other{entry.function, {}, {}, {}};
      if (is_read(entry.function)) {
        other.variable = entry.variable;
        other.place = entry.assignment.key_span;
      } else {
        other.place = findings.function_places[entry.function];
      }
      recipe.further.push_back(std::move(other));
    }
    recipe.further[place->second].sections.insert(is_variable ? std::string() : *section);
  }
  if (!has_run) {
    std::set<std::string> names;
    std::string list;
    for (const Found& entry : findings.found) {
      if (entry.function.empty() || section_of_entry(entry) == nullptr) continue;
      if (names.insert(entry.function).second) list += (list.empty() ? "`" : ", `") + entry.function + "`";
    }
    problem = {list.empty() ? fmt::format("no function `{}` assigns to a config here", run)
                            : fmt::format("no function `{}` assigns to a config here; {} do", run, list),
               {},
               {}};
    return std::nullopt;
  }
  for (Found& entry : findings.found) {
    const bool of_process = is_of_process(entry);
    if (!is_read(entry.function) || (!of_process && entry.variable != recipe.variable)) continue;
    if (of_process) entry.assignment.path.front() = kPythonVariables;
    recipe.assignments.push_back(std::move(entry.assignment));
  }
  for (const std::string& function : {std::string(), recipe.function}) {
    const auto call = findings.calls.find({function, recipe.variable});
    if (call != findings.calls.end()) recipe.base = call->second;
  }
  if (!recipe.base.exists()) {
    const auto given = findings.parameters.find({recipe.function, recipe.variable});
    if (given != findings.parameters.end()) recipe.base = given->second;
  }
  for (const PythonFindings::Change& change : findings.changes) {
    const bool is_base = recipe.base.begin == change.call.begin && recipe.base.end == change.call.end;
    if (change.variable == recipe.variable && is_read(change.function) && !is_base)
      recipe.changes.push_back(change.call);
  }
  for (SyntaxProblem& repeated : findings.repeated_keys) {
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
