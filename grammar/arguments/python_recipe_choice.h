// Which of a file's configs a recipe is: a file may have several functions, and a function several variables.
// Takes everything that the file assigns, gives what one of them assigns, and names the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "grammar/arguments/python_assignments.h"

namespace capstan {

/// What the statements of a file say, each with the function it stands in (empty: the module).
struct PythonFindings {
  struct Found {
    std::string variable, function;
    PythonAssignment assignment;
  };
  struct Change {
    std::string variable, function;
    Span call;
  };
  struct Return {
    std::string variable, function;
    bool conditional = false;
  };
  using ByName = std::map<std::pair<std::string, std::string>, Span>;  ///< by function and name

  std::vector<Found> found;
  std::vector<Change> changes;
  std::vector<Return> returns;  ///< in order of the text
  std::vector<SyntaxProblem> repeated_keys;
  ByName calls, parameters;  ///< calls that make a variable; parameters of functions
  std::map<std::string, Span> function_places;
};

/// The variable that a function returns comes before one that has more assignments. `run` names the function;
/// empty: the first. Nothing (with a problem without a place) when there is no such function.
std::optional<PythonRecipe> choose_python_recipe(PythonFindings findings, const std::string& run,
                                                 SyntaxProblem& problem);

}  // namespace capstan
