// YAML text -> SyntaxNode, through yaml-cpp's events (the only folder that includes it). Places are exact.
// Anchors and aliases are copied out, `<<` merges follow YAML 1.1; duplicate keys, several documents, keys
// that are no scalars, and nesting or alias expansion beyond bounds are problems. Plain scalars are typed as
// yaml_scalars.h says; quoted ones are strings.
#pragma once

#include <optional>
#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"
#include "grammar/yaml/yaml_scalars.h"

namespace capstan {

/// Nothing on the first problem. An empty text is an empty table. With `duplicates`, keys that stand twice
/// are listed there and the last one holds, as the usual YAML loaders do; without it they are a problem.
std::optional<SyntaxNode> parse_yaml(SourceId source, const SourceMap& sources, SyntaxProblem& problem,
                                     std::vector<SyntaxProblem>* duplicates = nullptr,
                                     YamlScalars scalars = YamlScalars::core);

}  // namespace capstan
