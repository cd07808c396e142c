// Compact byte form of parsed rule files, so that the program starts without parsing rule text. Made at build
// time from rules/, read at start. Not a file format for users: reader and writer are always of the same
// build.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grammar/rule/rule_syntax.h"

namespace capstan {

std::string encode_binary(const RuleFileSyntax& file);
/// Nothing if the bytes are truncated or malformed.
std::optional<RuleFileSyntax> decode_binary(std::string_view bytes);

}  // namespace capstan
