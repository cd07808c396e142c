// A Python literal -> SyntaxNode: strings, numbers, True, False, None, lists, tuples, dicts with string keys,
// torch dtypes, members of enums and functions by name. Nothing else is a literal.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

/// Nothing, with the reason as a noun phrase, when the text at `place` is no literal. Keys that stand twice
/// in a dict are added to `repeated`; the last of them holds.
std::optional<SyntaxNode> parse_python_literal(Span place, const SourceMap& sources, std::string& why,
                                               std::vector<SyntaxProblem>& repeated);

}  // namespace capstan
