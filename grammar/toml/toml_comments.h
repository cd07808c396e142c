// The comments of a TOML text, which the parser drops: suppressions stand in them, and fixes must keep them.
// A `#` inside a string (also a multi-line one) is no comment. Works on malformed text too.
#pragma once

#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// In order of the text.
std::vector<Comment> find_toml_comments(SourceId source, const SourceMap& sources);

}  // namespace capstan
