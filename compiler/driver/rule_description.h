// A rule for people and for programs: what `capstan explain` and `capstan rules list | show` print.
#pragma once

#include <string>
#include <vector>

#include "compiler/ruleset/rule.h"

namespace capstan {

/// All items of one code: one rule, written once or once per range of releases.
struct RuleGroup {
  std::string code;
  std::vector<const RuleItem*> items;  ///< in framework order, at least one
  const RuleItem& first() const { return *items.front(); }
};

/// Rules and rewrites by code, sorted.
std::vector<RuleGroup> group_rules(const RuleSet& rules);
/// "graphs": the folder that the rule file stands in.
std::string family_of(const RuleItem& item);
/// "rejects", "breaks", "advice", or "rewrite".
std::string kind_of(const RuleItem& item);
/// "megatron-core >= 0.16 < 0.18, transformer-engine"; "any release" without ranges.
std::string applies_text(const RuleItem& item);
/// Names of the known stacks on which some item of the rule is active.
std::vector<std::string> stacks_of(const RuleGroup& group, const Schema& schema);

/// Kind, range, reason, patterns, fixes, sources, evidence; without the Markdown.
std::string describe_rule(const RuleGroup& group, const RuleSet& rules, const Schema& schema);
/// A JSON array of rules, each with every field and `documentation` (Markdown; parallel to `groups`).
std::string rules_to_json(const std::vector<RuleGroup>& groups, const std::vector<std::string>& documents,
                          const RuleSet& rules, const Schema& schema);

}  // namespace capstan
