// One pass over the items of a rule set in framework order: what each define and rewrite writes and whether
// each check fails. Changes the facts it is given. For evaluate.h and reevaluate.h alone.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/expression_evaluator.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

class RuleWalk {
 public:
  /// The facts must outlive it.
  RuleWalk(const ActiveRules& rules, Facts& facts) : set_(*rules.set), facts_(facts), evaluator_(facts) {}

  void define(const RuleItem& item);
  /// Whether the check fails.
  Truth fails(const RuleItem& item);
  /// Whether a rewrite takes place.
  Truth takes_place(const RuleItem& item);
  /// Applies a rewrite. All its values are computed before the first is assigned. When it is unknown whether
  /// it takes place, what it writes becomes unknown.
  void rewrite(const RuleItem& item, Truth when) { apply(item, when, nullptr); }
  /// The same, and adds to `changes` what is told of it: every change, or for a silent rewrite with a message
  /// those of keys that a layer of the config set. There is none where it is unknown whether it takes place.
  void rewrite(const RuleItem& item, Truth when, std::vector<Violation::Change>& changes);
  /// Takes the item, of whatever kind. True when it is decidedly violated: a check that fails, a rewrite of
  /// which something is told.
  bool step(const RuleItem& item);
  /// What is told of the item (index into RuleSet::items) at this point of the walk.
  Violation violation(std::uint32_t index, bool undecided) const;

 private:
  void apply(const RuleItem& item, Truth when, std::vector<Violation::Change>* changes);
  void collect_missing(const RuleItem& item, std::vector<const RuleItem*>& visited,
                       std::vector<FactId>& missing) const;

  const RuleSet& set_;
  Facts& facts_;
  ExpressionEvaluator evaluator_;
  std::unordered_map<FactId, const RuleItem*> unknown_from_;  // who made a fact unknown
  std::vector<Fact> after_;                                   // of one rewrite; kept for its memory
  std::vector<Violation::Change> told_;                       // of one step; likewise
};

}  // namespace capstan
