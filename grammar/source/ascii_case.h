// Letters without regard to case. Takes any bytes and changes A to Z only, so that no locale and no encoding
// plays a part; pure.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

std::string lower_ascii(std::string_view text);

}  // namespace capstan
