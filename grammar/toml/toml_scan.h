// One pass over TOML text that knows only strings, comments, brackets and dots. Finds what must be known
// before the real parser runs (nesting that is too deep, bytes that are no text) and what the real parser
// drops (comments). Never fails: on malformed text it goes on at the next line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// Deepest nesting of tables and lists, dotted keys and headers included.
inline constexpr std::uint32_t kMaxTomlDepth = 64;
/// Most headers and dotted keys of one text: toml++ searches them linearly for each new one.
inline constexpr std::uint32_t kMaxTomlTables = 20000;

struct TomlScan {
  struct Range {
    std::uint32_t begin = 0, end = 0;
  };
  std::vector<Range> comments;            ///< from `#` to the end of the line, line ending excluded
  std::optional<std::uint32_t> too_deep;  ///< offset of the bracket or dot that goes beyond kMaxTomlDepth
  std::optional<std::uint32_t> too_many;  ///< offset of the header or dot that goes beyond kMaxTomlTables
  /// Offset of the first character beyond ASCII where TOML 1.0 has none: outside strings and comments, or
  /// behind a backslash. (toml++ 3 runs into undefined behaviour on some of them, so it must not see them.)
  std::optional<std::uint32_t> beyond_ascii;
  std::optional<std::uint32_t> unclosed;  ///< offset of the first quote of the first string that does not end
};

TomlScan scan_toml(std::string_view text);

/// The first place that makes the text no readable text: a NUL byte or a byte that is no valid UTF-8.
struct BadByte {
  std::uint32_t offset = 0;
  std::string message;
};
std::optional<BadByte> find_bad_byte(std::string_view text);

}  // namespace capstan
