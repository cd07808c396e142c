// The mark that some editors put in front of UTF-8 text. Readers begin behind it; places count it, so that
// edits fit the file.
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan {

/// Bytes of the mark at the beginning of the text; 0 without one.
constexpr std::size_t byte_order_mark_size(std::string_view text) {
  return text.starts_with("\xEF\xBB\xBF") ? 3 : 0;
}

}  // namespace capstan
