// Python recipes as straight-line code: `cfg.section.key = literal`, also with `["key"]`, chained, in tuples,
// as arguments of a constructor (`cfg.ddp = DistributedDataParallelConfig(overlap_grad_reduce=True)`) or of
// `setattr`. A name that is assigned once, to a literal, stands for it; one that is assigned a part of the
// config
// (`m = cfg.model`) stands for that. Each assignment gets its place; one
// whose value is no literal, or that stands in a condition or loop, is listed as unknown, never guessed.
// Calls that are given the config are listed; other statements are passed over.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

/// Section of `os.environ["NAME"] = "value"`, as of the config's own `env_vars`.
inline constexpr const char* kPythonVariables = "env_vars";

/// Name of a config that is made where it is returned (`return Container(...)`) and has no variable.
inline constexpr const char* kPythonReturned = "return";

struct PythonAssignment {
  /// Without the variable: {"model", "cuda_graph_impl"}; empty when any key may be meant (`cfg[name] = 1`).
  std::vector<std::string> path;
  Span key_span;     ///< the dotted path with the variable, or the name of the argument
  SyntaxNode value;  ///< unsupported when it is not known; `what` says why
  bool anew =
      false;  ///< the section is made anew: what was set of it before does not count; there is no value
};

struct PythonRecipe {
  /// A config that is not read: another function's, or another variable of what is read.
  struct Further {
    std::string function;
    std::string variable;  ///< empty: the whole function is not read
    Span place;            ///< of the function's name, or of the variable's first assignment
    /// What the assignments name behind the variable ("model"): whether that is a config is not known here.
    /// An empty name stands for a function that uses the same variable as the one that is read.
    std::set<std::string> sections;
  };
  std::string variable;  ///< "cfg": what the function returns, or else what most assignments use
  std::vector<PythonAssignment> assignments;  ///< of the module and of one function
  std::vector<Comment> comments;
  std::vector<Span> changes;  ///< calls that are given the variable: what they change is unknown
  std::vector<SyntaxProblem> repeated_keys;  ///< of dicts; the last of equal ones holds
  Span base;  ///< the call that makes the variable, or the parameter that it is: its values are unknown
  std::string function;  ///< the function that is read; empty if all stands in the module
  std::vector<Further> further;
};

/// Reads the function named `run`; when it is empty, the first that returns a config or else assigns to one.
/// Nothing (with a problem) for
/// texts that are no Python where they assign, and (with a problem without a place) when there is no such
/// function.
std::optional<PythonRecipe> parse_python_recipe(SourceId source, const SourceMap& sources,
                                                const std::string& run, SyntaxProblem& problem);

}  // namespace capstan
