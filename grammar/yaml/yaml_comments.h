// Comments of a YAML text, in order of the text: `#` at the beginning of a line or behind a blank, outside of
// scalars and block scalars.
#pragma once

#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

/// `tree` is what parse_yaml() made of the text.
std::vector<Comment> find_yaml_comments(SourceId source, const SourceMap& sources, const SyntaxNode& tree);

}  // namespace capstan
