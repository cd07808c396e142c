// Compact byte form of a Schema, so that the program starts without parsing TOML. Made at build time, read at
// start; reader and writer are always of the same build.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/schema/schema.h"

namespace capstan {

std::string encode_schema(const Schema& schema);
/// Nothing if the bytes are truncated or malformed.
std::optional<Schema> decode_schema(std::string_view bytes);

}  // namespace capstan
