// Text for a shell to read back unchanged: takes any text without NUL bytes, gives it in single quotes, each
// quote inside written as '\''; pure.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

std::string shell_quoted(std::string_view text);

}  // namespace capstan
