#include "compiler/ruleset/reevaluate.h"

#include <algorithm>

namespace capstan {
namespace {

/// Nothing that a rule can read tells them apart.
bool identical(const Fact& a, const Fact& b) {
  return a.state == b.state && a.set == b.set && a.is_version == b.is_version && a.is_set == b.is_set &&
         a.value == b.value && (!a.is_version || a.version == b.version);
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
  std::vector<Violation::Change> changes;
  for (std::size_t position = 0; position < rules.items.size(); ++position) {
    const RuleItem& item = rules.set->items[rules.items[position]];
    switch (item.kind) {
      case RuleItem::Kind::define:
        walk_.define(item);
        written_.push_back(now_.values[item.defined]);
        touched_.push_back(item.defined);
        break;
      case RuleItem::Kind::check:
        violated_[position] = walk_.fails(item) == Truth::yes;
        break;
      case RuleItem::Kind::rewrite:
        changes.clear();
        if (const Truth when = walk_.takes_place(item); when != Truth::no) walk_.rewrite(item, when, changes);
        violated_[position] = !changes.empty();
        for (const ResolvedAction& action : item.assignments) {
          written_.push_back(now_.values[action.key]);
          touched_.push_back(action.key);
        }
        break;
    }
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
  std::vector<Violation::Change> told;
  auto known = written_.cbegin();  // what the item at hand writes in the config itself
  for (std::size_t position = 0; position < rules_.items.size(); ++position) {
    const RuleItem& item = rules_.set->items[rules_.items[position]];
    if (!is_affected(item)) {
      if (violated_[position] != 0) items.push_back(rules_.items[position]);
      if (item.kind == RuleItem::Kind::define) keep(item.defined, *known++);
      if (item.kind == RuleItem::Kind::rewrite) {
        for (const ResolvedAction& action : item.assignments) keep(action.key, *known++);
      }
      continue;
    }
    for (const FactId fact : item.reads) bring_up_to_date(fact);
    switch (item.kind) {
      case RuleItem::Kind::define:
        walk_.define(item);
        compare(item.defined, *known++);
        break;
      case RuleItem::Kind::check:
        if (walk_.fails(item) == Truth::yes) items.push_back(rules_.items[position]);
        break;
      case RuleItem::Kind::rewrite:
        for (const ResolvedAction& action : item.assignments) bring_up_to_date(action.key);
        told.clear();
        if (const Truth when = walk_.takes_place(item); when != Truth::no) walk_.rewrite(item, when, told);
        if (!told.empty()) items.push_back(rules_.items[position]);
        for (const ResolvedAction& action : item.assignments) compare(action.key, *known++);
        break;
    }
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
