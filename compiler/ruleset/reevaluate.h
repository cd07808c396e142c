// Judges variants of one config: with a few facts changed, only what depends on them is evaluated again.
// Gives exactly what decided_violations() gives for the changed facts.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/rule.h"
#include "compiler/ruleset/rule_walk.h"

namespace capstan {

/// A state for one fact. An unset fact has its default as value.
struct Assignment {
  FactId fact = 0;
  bool set = true;
  Value value;
  friend bool operator==(const Assignment&, const Assignment&) = default;
};

/// Gives the fact the state.
void assign(Fact& fact, const Assignment& assignment);

/// Not thread-safe.
class Reevaluator {
 public:
  /// Both must outlive it; the facts must stay as they are.
  Reevaluator(const ActiveRules& rules, const Facts& facts);
  Reevaluator(const Reevaluator&) = delete;
  Reevaluator& operator=(const Reevaluator&) = delete;

  /// The items violated with the changes (later ones of a fact win), in framework order.
  std::vector<std::uint32_t> violations(const std::vector<Assignment>& changes);

 private:
  bool is_affected(const RuleItem& item) const;
  void bring_up_to_date(FactId fact);
  /// What the item wrote to the fact; `known` is what it writes in the config itself.
  void compare(FactId fact, const Fact& known);
  void keep(FactId fact, const Fact& known);
  void reset();

  const ActiveRules& rules_;
  const Facts& facts_;
  Facts
      now_;  ///< of the variant as far as the walk is; facts that are as in the config itself may lag behind
  RuleWalk walk_;
  std::vector<Fact> written_;           ///< by the items in order, in the config itself
  std::vector<std::uint8_t> violated_;  ///< by position: in the config itself
  std::vector<std::uint8_t> differs_;   ///< by fact: now_ is not as in the config itself
  std::vector<const Fact*> pending_;    ///< by fact: what now_ lags behind; null where it does not
  std::vector<FactId> touched_;         ///< facts of now_ that were written
};

}  // namespace capstan
