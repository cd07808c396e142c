// "attn, mlp" -> the words between the commas, as framework keys write lists of names in one string.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace capstan {

/// In order, without blanks around them; empty ones are left out.
std::vector<std::string> comma_words(std::string_view text);

}  // namespace capstan
