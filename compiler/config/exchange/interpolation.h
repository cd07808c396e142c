// `${...}` in strings of YAML that OmegaConf reads: it fills them in unless a backslash stands in front.
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace capstan {

/// The text behind the escapes; nothing when OmegaConf fills something in.
std::optional<std::string> without_interpolation(std::string_view text);
/// The text that stands for `text` itself.
std::string escape_interpolation(std::string_view text);

}  // namespace capstan
