// A comment of a config text: suppressions stand in comments, and fixes must keep them.
#pragma once

#include <cstdint>

#include "grammar/source/span.h"

namespace capstan {

struct Comment {
  Span span;               ///< from `#` to the end of the line, line ending excluded
  std::uint32_t line = 1;  ///< 1-based
  bool alone = false;      ///< nothing but blanks before it on its line
};

}  // namespace capstan
