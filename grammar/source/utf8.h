// Which bytes are text: valid UTF-8 without overlong forms and surrogates.
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan {

/// Length of the valid sequence at `at` (1 to 4 bytes), or 0.
std::size_t utf8_sequence(std::string_view text, std::size_t at);
/// The first byte that belongs to no valid sequence; npos when the text is valid.
std::size_t find_invalid_utf8(std::string_view text);

}  // namespace capstan
