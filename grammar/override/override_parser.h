// Hydra-style overrides: `key=value`, `+key=value`, `++key=value`, `~key`, quoted strings, lists `[a,b]`,
// dicts `{a:1}`, none as `null` or `None`; in sweeps also `k=a,b,c`, `choice(a,b)`, `range(1,9,2)`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

struct Override {
  enum class Kind { set, add, force_add, remove };  ///< `k=v`, `+k=v`, `++k=v`, `~k`
  Kind kind = Kind::set;
  std::vector<std::string> path;  ///< ["model", "cuda_graph_impl"]
  Span key_span;
  SyntaxNode value;                 ///< for remove: a none scalar
  std::vector<SyntaxNode> choices;  ///< sweeps only: all values; else empty
};

/// file: a line of a file that Hydra reads. `${...}`, which it fills in, makes a value of Kind::unsupported,
/// and
/// `~key=value` removes as `~key` does; elsewhere both are refused.
enum class OverrideMode { single, sweep, file };

/// Values without quotes are typed as Hydra does (true, 3, 0.5, null, else string).
std::optional<Override> parse_override(SourceId source, const SourceMap& sources, OverrideMode mode,
                                       SyntaxProblem& problem);

/// Same, for a part of a text (a line of a file of overrides).
std::optional<Override> parse_override(Span place, const SourceMap& sources, OverrideMode mode,
                                       SyntaxProblem& problem);

}  // namespace capstan
