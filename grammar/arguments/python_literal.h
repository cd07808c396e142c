// A Python literal -> SyntaxNode: strings, numbers, True, False, None, lists, tuples, dicts with string keys,
// torch dtypes, members of enums and functions by name. Nothing else is a literal.
#pragma once

#include <optional>
#include <string>

#include "grammar/source/source_file.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

/// Nothing, with the reason as a noun phrase, when the text at `place` is no literal.
std::optional<SyntaxNode> parse_python_literal(Span place, const SourceMap& sources, std::string& why);

}  // namespace capstan
