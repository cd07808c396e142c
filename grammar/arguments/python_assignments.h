// Python recipes as straight-line code: `cfg.section.key = literal`. Each assignment gets its place; one
// whose value is no literal, or that stands in a condition, loop or helper, is listed as unknown, never
// guessed. Other statements are passed over.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

struct PythonAssignment {
  std::vector<std::string> path;  ///< without the variable: {"model", "cuda_graph_impl"}
  Span key_span;                  ///< the dotted path with the variable
  SyntaxNode value;               ///< unsupported when it is not known; `what` says why
};

struct PythonRecipe {
  std::string variable;  ///< "cfg"; the name that most assignments use
  std::vector<PythonAssignment> assignments;
  std::vector<Comment> comments;
  Span base;  ///< the call that makes the variable, if any: its values are unknown
};

/// Nothing (with a problem) for texts whose strings or brackets do not close.
std::optional<PythonRecipe> parse_python_recipe(SourceId source, const SourceMap& sources,
                                                SyntaxProblem& problem);

}  // namespace capstan
