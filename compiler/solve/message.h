// A rule's message with its {name} holes filled from a violation, and values as messages show them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/evaluate.h"

namespace capstan {

/// Values as they were when the rule was judged; facts it does not carry come from `facts`. `arguments` (if
/// given) gets the filled holes, sorted by name. A hole that names no fact stays as it is.
std::string interpolate(const std::string& text, const Violation& violation, const Facts& facts,
                        std::vector<std::pair<std::string, Value>>* arguments);
/// Strings bare, everything else as TOML writes it.
std::string shown(const Value& value);
/// "a, b and c"
std::string joined(const std::vector<std::string>& parts, std::string_view last);

}  // namespace capstan
