// The texts of rules: messages with {key} holes, and the patterns of the framework's own messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ruleset/evaluate.h"

namespace capstan {

/// Names in the holes of a message, in order. A hole is `{section.key}`; other braces are text.
std::vector<std::string> message_holes(std::string_view message);

/// The message with each hole replaced by the fact's value as it was when the item was judged (`none`,
/// `"local"`, `8`), or by "unknown".
std::string interpolate(std::string_view message, const Violation& violation, const FactNames& names);

/// `*` matches any text, line breaks too; everything else itself. The whole text must match.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace capstan
