// What changes between two stacks: rules that newly forbid or no longer forbid, each with a smallest witness
// config that one accepts and the other refuses. Only checks of kind *rejects* speak for the framework.
// Witnesses are confirmed by the evaluator on both sides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/subject.h"

namespace capstan {

/// A config as far as it differs from the defaults, by key name (fact ids are shared by both sides).
struct Witness {
  std::vector<Assignment> settings;
};

struct RuleDifference {
  std::uint32_t position = 0;  ///< in the rules of the stack that refuses
  Witness witness;
  std::string message;  ///< what the refusing stack says
};

struct StackDifference {
  std::vector<RuleDifference> newly_forbidden;   ///< accepted before, refused after
  std::vector<RuleDifference> newly_allowed;     ///< refused before, accepted after
  std::vector<std::string> keys_gone, keys_new;  ///< config keys that only one side knows
  std::vector<std::uint32_t> undecided;  ///< positions (of either side) without an answer within the limit
};

/// `before` and `after` share one RuleSet.
StackDifference compare_stacks(const RuleBook& before, const RuleBook& after, const SmtOptions& options);

}  // namespace capstan
