// Ranges of component versions, as `applies` has them: which stacks they take in, and whether two can meet.
#pragma once

#include <vector>

#include "compiler/ruleset/rule.h"

namespace capstan {

bool holds(const ResolvedBound& bound, const Version& version);
/// All ranges hold; a component that the stack does not name has no version, so its range does not.
bool applies_to(const std::vector<ResolvedRange>& ranges, const Stack& stack);
/// Some version of every component satisfies both.
bool can_overlap(const std::vector<ResolvedRange>& a, const std::vector<ResolvedRange>& b);

/// A front-end runs the checks of an enforcer.
bool runs(std::string_view frontend, Enforcer enforcer);
/// Whether the item is active on a stack.
bool is_active(const RuleItem& item, const Stack& stack);

}  // namespace capstan
