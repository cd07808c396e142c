// Text for a terminal: how wide it is in character cells, and with nothing in it that a terminal would obey.
// Control and direction characters become visible (`\x1b`, `\u{202e}`), bytes that are no UTF-8 become
// U+FFFD.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// One code point of a source line as it is shown; tabs are already spaces.
struct DisplayCell {
  std::uint32_t begin = 0;  ///< byte offset in the line
  std::string text;
  std::uint32_t width = 1;  ///< character cells; 0 for combining marks, 2 for wide characters
};

/// A line as cells, at most until `max_width` character cells are reached. Tabs reach to the next multiple of
/// four.
std::vector<DisplayCell> display_cells(std::string_view line, std::uint32_t max_width);

/// Text without control characters; a line feed is kept only when `keep_lines`, else it becomes a space.
std::string safe_text(std::string_view text, bool keep_lines = false);

}  // namespace capstan
