#include "compiler/ruleset/evaluate.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "compiler/ruleset/expression_evaluator.h"
#include "compiler/ruleset/rule_values.h"

namespace capstan {
namespace {

/// Gives the fact the value that a rule computed; where it came from and whether it was set stay.
void assign(Fact& fact, const ValueView& view) {
  fact.state = view.is_unknown() ? Fact::State::unknown : Fact::State::known;
  fact.is_version = view.tag == ValueView::Tag::version;
  fact.is_set = view.tag == ValueView::Tag::set;
  // The view may refer to this very fact: copy before the old value goes.
  const Version version = fact.is_version ? *view.version : Version{};
  fact.value = view.to_value();
  fact.version = version;
}

bool same_fact(const Fact& a, const Fact& b) {
  if (a.state != b.state || a.is_version != b.is_version) return false;
  if (a.state == Fact::State::unknown) return true;
  if (a.is_version) return a.version == b.version;
  if (a.is_set && b.is_set) return same_set(a.value.list(), b.value.list());
  return a.value == b.value;
}

class Walk {
 public:
  Walk(const ActiveRules& rules, Facts& facts) : set_(*rules.set), facts_(facts), evaluator_(facts) {}

  void define(const RuleItem& item) {
    Fact& fact = facts_.values[item.defined];
    assign(fact, evaluator_.evaluate(item.value));
    evaluator_.clear();
    if (fact.state == Fact::State::unknown) unknown_from_[item.defined] = &item;
  }

  /// Whether the check fails.
  Truth fails(const RuleItem& item) {
    Truth failed = item.has_when ? evaluator_.condition(item.when) : Truth::yes;
    if (failed != Truth::no) {
      const Truth held = evaluator_.condition(item.require);
      if (held == Truth::yes)
        failed = Truth::no;
      else if (held == Truth::unknown)
        failed = Truth::unknown;
    }
    evaluator_.clear();
    return failed;
  }

  /// Whether a rewrite takes place.
  Truth takes_place(const RuleItem& item) {
    const Truth when = item.has_when ? evaluator_.condition(item.when) : Truth::yes;
    evaluator_.clear();
    return when;
  }

  /// Applies a rewrite and adds its changes to `changes`, unless that is null. All its values are computed
  /// before the first is assigned. When it is unknown whether it takes place, what it writes becomes unknown,
  /// and there is no change to tell.
  void rewrite(const RuleItem& item, Truth when, std::vector<Violation::Change>* changes) {
    after_.clear();
    for (const ResolvedAction& action : item.assignments) {
      assign(after_.emplace_back(),
             when == Truth::unknown ? ValueView::unknown() : evaluator_.evaluate(action.value));
    }
    evaluator_.clear();
    for (std::size_t index = 0; index < after_.size(); ++index) {
      const FactId key = item.assignments[index].key;
      Fact& fact = facts_.values[key];
      Fact& next = after_[index];
      if (changes != nullptr && when == Truth::yes && !same_fact(fact, next))
        changes->push_back({key, fact.value, next.value});
      next.set = fact.set;
      next.setting = fact.setting;
      fact = std::move(next);
      if (fact.state == Fact::State::unknown) unknown_from_[key] = &item;
    }
  }

  Violation violation(std::uint32_t index, bool undecided) const {
    const RuleItem& item = set_.items[index];
    Violation violation;
    violation.item = index;
    violation.undecided = undecided;
    for (const FactId id : item.shown) {
      if (facts_.values[id].state == Fact::State::known)
        violation.values.emplace_back(id, facts_.values[id].value);
    }
    if (undecided) {
      std::vector<const RuleItem*> visited;
      collect_missing(item, visited, violation.missing);
      std::sort(violation.missing.begin(), violation.missing.end());
    }
    return violation;
  }

 private:
  /// The unknown facts that the item reads; for one that a rule computed, those that made it unknown.
  void collect_missing(const RuleItem& item, std::vector<const RuleItem*>& visited,
                       std::vector<FactId>& missing) const {
    visited.push_back(&item);
    for (const FactId id : item.reads) {
      if (facts_.values[id].state == Fact::State::known) continue;
      const auto from = unknown_from_.find(id);
      if (from == unknown_from_.end()) {
        if (std::find(missing.begin(), missing.end(), id) == missing.end()) missing.push_back(id);
      } else if (std::find(visited.begin(), visited.end(), from->second) == visited.end()) {
        collect_missing(*from->second, visited, missing);
      }
    }
  }

  const RuleSet& set_;
  Facts& facts_;
  ExpressionEvaluator evaluator_;
  std::unordered_map<FactId, const RuleItem*> unknown_from_;  // who made a fact unknown
  std::vector<Fact> after_;                                   // of one rewrite; kept for its memory
};

}  // namespace

Evaluation evaluate(const ActiveRules& rules, Facts facts) {
  Evaluation evaluation;
  evaluation.final_facts = std::move(facts);
  Walk walk(rules, evaluation.final_facts);
  for (const std::uint32_t index : rules.items) {
    const RuleItem& item = rules.set->items[index];
    switch (item.kind) {
      case RuleItem::Kind::define:
        walk.define(item);
        break;
      case RuleItem::Kind::check: {
        const Truth failed = walk.fails(item);
        if (failed != Truth::no)
          evaluation.violations.push_back(walk.violation(index, failed == Truth::unknown));
        break;
      }
      case RuleItem::Kind::rewrite: {
        const Truth when = walk.takes_place(item);
        if (when == Truth::no) break;
        if (item.silent) {
          walk.rewrite(item, when, nullptr);
          break;
        }
        // The values shown are those from before the rewrite.
        Violation violation = walk.violation(index, when == Truth::unknown);
        walk.rewrite(item, when, &violation.changes);
        if (violation.undecided || !violation.changes.empty())
          evaluation.violations.push_back(std::move(violation));
        break;
      }
    }
  }
  return evaluation;
}

std::vector<std::uint32_t> decided_violations(const ActiveRules& rules, Facts& facts) {
  std::vector<std::uint32_t> items;
  std::vector<Violation::Change> changes;
  Walk walk(rules, facts);
  for (const std::uint32_t index : rules.items) {
    const RuleItem& item = rules.set->items[index];
    switch (item.kind) {
      case RuleItem::Kind::define:
        walk.define(item);
        break;
      case RuleItem::Kind::check:
        if (walk.fails(item) == Truth::yes) items.push_back(index);
        break;
      case RuleItem::Kind::rewrite: {
        const Truth when = walk.takes_place(item);
        if (when == Truth::no) break;
        changes.clear();
        walk.rewrite(item, when, item.silent ? nullptr : &changes);
        if (!changes.empty()) items.push_back(index);
        break;
      }
    }
  }
  return items;
}

std::optional<Violation> first_rejection(const ActiveRules& rules, Facts& facts) {
  Walk walk(rules, facts);
  for (const std::uint32_t index : rules.items) {
    const RuleItem& item = rules.set->items[index];
    if (item.kind == RuleItem::Kind::define) {
      walk.define(item);
    } else if (item.kind == RuleItem::Kind::rewrite) {
      if (const Truth when = walk.takes_place(item); when != Truth::no) walk.rewrite(item, when, nullptr);
    } else if (item.finding == FindingKind::rejects && walk.fails(item) == Truth::yes) {
      return walk.violation(index, false);
    }
  }
  return std::nullopt;
}

Evaluated evaluate_expression(const TypedExpr& expr, const Facts& facts) {
  ExpressionEvaluator evaluator(facts);
  const ValueView view = evaluator.evaluate(expr);
  Evaluated evaluated;
  if (view.is_unknown()) {
    evaluated.state = Fact::State::unknown;
  } else if (view.tag == ValueView::Tag::version) {
    evaluated.is_version = true;
    evaluated.version = *view.version;
  } else {
    evaluated.value = view.to_value();
  }
  return evaluated;
}

}  // namespace capstan
