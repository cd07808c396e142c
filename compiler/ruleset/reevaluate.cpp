#include "compiler/ruleset/reevaluate.h"

#include <algorithm>

namespace capstan {
namespace {

/// Nothing that a rule can read tells them apart.
bool identical(const Fact& a, const Fact& b) {
  return a.state == b.state && a.set == b.set && a.is_version == b.is_version && a.is_set == b.is_set &&
         a.value == b.value && (!a.is_version || a.version == b.version);
}

/// The facts that a define or a rewrite writes, in order; none for a check.
template <typename Visit>
void for_each_written(const RuleItem& item, const Visit& visit) {
  if (item.kind == RuleItem::Kind::define) visit(item.defined);
  if (item.kind != RuleItem::Kind::rewrite) return;
  for (const ResolvedAction& action : item.assignments) visit(action.key);
}

}  // namespace

void assign(Fact& fact, const Assignment& assignment) {
  fact.state = Fact::State::known;
  fact.is_version = false;
  fact.set = assignment.set;
  fact.value = assignment.value;
}

Reevaluator::Reevaluator(const ActiveRules& rules, const Facts& facts)
    : rules_(rules),
      facts_(facts),
      now_(facts),
      walk_(rules, now_),
      violated_(rules.items.size(), 0),
      differs_(facts.values.size(), 0),
      pending_(facts.values.size(), nullptr) {
  for (std::size_t position = 0; position < rules.items.size(); ++position) {
    const RuleItem& item = rules.set->items[rules.items[position]];
    violated_[position] = walk_.step(item) ? 1 : 0;
    for_each_written(item, [this](FactId fact) {
      written_.push_back(now_.values[fact]);
      touched_.push_back(fact);
    });
  }
  reset();
}

std::vector<std::uint32_t> Reevaluator::violations(const std::vector<Assignment>& changes) {
  for (const Assignment& change : changes) {
    assign(now_.values.at(change.fact), change);
    differs_[change.fact] = 1;
    touched_.push_back(change.fact);
  }
  std::vector<std::uint32_t> items;
  auto known = written_.cbegin();  // what the item at hand writes in the config itself
  for (std::size_t position = 0; position < rules_.items.size(); ++position) {
    const RuleItem& item = rules_.set->items[rules_.items[position]];
    if (!is_affected(item)) {
      if (violated_[position] != 0) items.push_back(rules_.items[position]);
      for_each_written(item, [&](FactId fact) { keep(fact, *known++); });
      continue;
    }
    for (const FactId fact : item.reads) bring_up_to_date(fact);
    if (item.kind == RuleItem::Kind::rewrite)
      for_each_written(item, [this](FactId fact) { bring_up_to_date(fact); });
    if (walk_.step(item)) items.push_back(rules_.items[position]);
    for_each_written(item, [&](FactId fact) { compare(fact, *known++); });
  }
  reset();
  return items;
}

bool Reevaluator::is_affected(const RuleItem& item) const {
  const auto differs = [this](FactId fact) { return differs_[fact] != 0; };
  return std::any_of(item.reads.begin(), item.reads.end(), differs) ||
         (item.kind == RuleItem::Kind::rewrite &&
          std::any_of(item.assignments.begin(), item.assignments.end(),
                      [&](const ResolvedAction& action) { return differs(action.key); }));
}

void Reevaluator::bring_up_to_date(FactId fact) {
  if (pending_[fact] == nullptr) return;
  now_.values[fact] = *pending_[fact];
  pending_[fact] = nullptr;
  touched_.push_back(fact);
}

void Reevaluator::compare(FactId fact, const Fact& known) {
  differs_[fact] = identical(now_.values[fact], known) ? 0 : 1;
  pending_[fact] = nullptr;
  touched_.push_back(fact);
}

void Reevaluator::keep(FactId fact, const Fact& known) {
  differs_[fact] = 0;
  pending_[fact] = &known;
}

void Reevaluator::reset() {
  for (const FactId fact : touched_) {
    now_.values[fact] = facts_.values[fact];
    differs_[fact] = 0;
  }
  std::fill(pending_.begin(), pending_.end(), nullptr);
  touched_.clear();
}

}  // namespace capstan
