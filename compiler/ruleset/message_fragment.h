// Pieces of the framework's messages: how much of a text that someone copied, in part, a pattern of messages
// accounts for. `*` matches any text, as in matches_pattern().
#pragma once

#include <cstddef>
#include <string_view>

namespace capstan {

/// `text` may stand anywhere within what the pattern matches, or begin before it and end within it. The most
/// characters but blanks of `text` that are the pattern's own in such a place; 0 if there is none.
std::size_t fragment_of_pattern(std::string_view pattern, std::string_view text);

}  // namespace capstan
