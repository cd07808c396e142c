// The texts of rules: messages with {key} holes, and the patterns of the framework's own messages.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/evaluate.h"

namespace capstan {

/// Names in the holes of a message, in order. A hole is `{section.key}`; other braces are text.
std::vector<std::string> message_holes(std::string_view message);

/// The message with its holes filled: values as they were when the item was judged; facts that the violation
/// does not carry come from `facts`. `arguments` (if given) gets the filled holes, sorted by name. A hole
/// that names no fact stays as it is.
std::string interpolate(std::string_view message, const Violation& violation, const Facts& facts,
                        std::vector<std::pair<std::string, Value>>* arguments);
/// Strings bare, everything else as TOML writes it.
std::string shown(const Value& value);
/// "a, b and c"
std::string joined(const std::vector<std::string>& parts, std::string_view last);

/// `*` matches any text, line breaks too; everything else itself. The whole text must match.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace capstan
