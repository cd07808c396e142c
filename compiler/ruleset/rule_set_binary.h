// Compact byte form of a resolved RuleSet, so that the program starts without resolving rules. Made at build
// time from rules/ and the schema of the build; reader and writer are always of the same build.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/ruleset/rule.h"

namespace capstan {

std::string encode_rule_set(const RuleSet& rules);
/// Nothing if the bytes are truncated or malformed.
std::optional<RuleSet> decode_rule_set(std::string_view bytes);

}  // namespace capstan
