// SHA-256 (FIPS 180-4) of a byte string, for digests of configs and plans.
#pragma once

#include <string>
#include <string_view>

namespace capstan {

/// 64 lower-case hex digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace capstan
