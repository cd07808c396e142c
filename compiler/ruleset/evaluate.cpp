#include "compiler/ruleset/evaluate.h"

#include <utility>

#include "compiler/ruleset/expression_evaluator.h"
#include "compiler/ruleset/rule_walk.h"

namespace capstan {

Evaluation evaluate(const ActiveRules& rules, Facts facts) {
  Evaluation evaluation;
  evaluation.final_facts = std::move(facts);
  RuleWalk walk(rules, evaluation.final_facts);
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
        if (item.silent && item.message.empty()) {
          walk.rewrite(item, when);
          break;
        }
        // The values shown are those from before the rewrite.
        Violation violation = walk.violation(index, when == Truth::unknown);
        walk.rewrite(item, when, violation.changes);
        if ((violation.undecided && !item.silent) || !violation.changes.empty())
          evaluation.violations.push_back(std::move(violation));
        break;
      }
    }
  }
  return evaluation;
}

std::vector<std::uint32_t> decided_violations(const ActiveRules& rules, Facts& facts) {
  std::vector<std::uint32_t> items;
  RuleWalk walk(rules, facts);
  for (const std::uint32_t index : rules.items) {
    if (walk.step(rules.set->items[index])) items.push_back(index);
  }
  return items;
}

std::optional<Violation> first_rejection(const ActiveRules& rules, Facts& facts) {
  RuleWalk walk(rules, facts);
  for (const std::uint32_t index : rules.items) {
    const RuleItem& item = rules.set->items[index];
    if (item.kind == RuleItem::Kind::define) {
      walk.define(item);
    } else if (item.kind == RuleItem::Kind::rewrite) {
      if (const Truth when = walk.takes_place(item); when != Truth::no) walk.rewrite(item, when);
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
