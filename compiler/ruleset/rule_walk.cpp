#include "compiler/ruleset/rule_walk.h"

#include <algorithm>
#include <utility>

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

}  // namespace

void RuleWalk::define(const RuleItem& item) {
  Fact& fact = facts_.values[item.defined];
  assign(fact, evaluator_.evaluate(item.value));
  evaluator_.clear();
  if (fact.state == Fact::State::unknown) unknown_from_[item.defined] = &item;
}

Truth RuleWalk::fails(const RuleItem& item) {
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

Truth RuleWalk::takes_place(const RuleItem& item) {
  const Truth when = item.has_when ? evaluator_.condition(item.when) : Truth::yes;
  evaluator_.clear();
  return when;
}

void RuleWalk::rewrite(const RuleItem& item, Truth when, std::vector<Violation::Change>& changes) {
  const auto is_set = [this](FactId fact) { return facts_.values[fact].set; };
  if (!item.silent) return apply(item, when, &changes);
  const bool speaks =
      !item.message.empty() && std::any_of(item.assignments.begin(), item.assignments.end(),
                                           [&](const ResolvedAction& action) { return is_set(action.key); });
  if (!speaks) return apply(item, when, nullptr);
  apply(item, when, &changes);
  std::erase_if(changes, [&](const Violation::Change& change) { return !is_set(change.fact); });
}

void RuleWalk::apply(const RuleItem& item, Truth when, std::vector<Violation::Change>* changes) {
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

bool RuleWalk::step(const RuleItem& item) {
  switch (item.kind) {
    case RuleItem::Kind::define:
      define(item);
      return false;
    case RuleItem::Kind::check:
      return fails(item) == Truth::yes;
    case RuleItem::Kind::rewrite:
      told_.clear();
      if (const Truth when = takes_place(item); when != Truth::no) rewrite(item, when, told_);
      return !told_.empty();
  }
  return false;
}

Violation RuleWalk::violation(std::uint32_t index, bool undecided) const {
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

/// The unknown facts that the item reads; for one that a rule computed, those that made it unknown.
void RuleWalk::collect_missing(const RuleItem& item, std::vector<const RuleItem*>& visited,
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

}  // namespace capstan
