// TOML text -> SyntaxNode. The only folder that includes toml++. Gives one diagnostic at the first syntax
// error (toml++ stops there), with exact place; refuses nesting deeper than 64 and texts that are not UTF-8.
#pragma once

#include <optional>

#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

std::optional<SyntaxNode> parse_toml(SourceId source, const SourceMap& sources, SyntaxProblem& problem);

}  // namespace capstan
