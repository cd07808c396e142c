// The bytes of rules/ that the program carries: made at build time by capstan_embed, read at start. Always of
// the same build.
#pragma once

#include <string_view>

namespace capstan {

/// Keys and stacks, as encode_schema() wrote them.
std::string_view embedded_schema();
/// The text of rules/flags.toml.
std::string_view embedded_flags();

}  // namespace capstan
