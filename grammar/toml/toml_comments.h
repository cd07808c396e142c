// The comments of a TOML text, which the parser drops: suppressions stand in them, and fixes must keep them.
// A `#` inside a string (also a multi-line one) is no comment. Works on malformed text too.
#pragma once

#include <cstdint>
#include <vector>

#include "grammar/source/source_file.h"
#include "grammar/source/span.h"

namespace capstan {

struct TomlComment {
  Span span;               ///< from `#` to the end of the line, line ending excluded
  std::uint32_t line = 1;  ///< 1-based
  bool alone = false;      ///< nothing but blanks before it on its line
};

/// In order of the text.
std::vector<TomlComment> find_toml_comments(SourceId source, const SourceMap& sources);

}  // namespace capstan
