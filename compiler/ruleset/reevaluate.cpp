#include "compiler/ruleset/reevaluate.h"

#include <algorithm>
#include <bit>

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

RuleDependences::RuleDependences(const ActiveRules& rules) {
  const std::size_t facts = rules.set == nullptr ? 0 : rules.set->names.size();
  std::vector<std::vector<std::uint32_t>> visits(facts);
  std::vector<std::uint32_t> last_slot(facts, kNoSlot);
  const auto visit = [&](FactId fact, std::uint32_t position) {
    if (visits[fact].empty() || visits[fact].back() != position) visits[fact].push_back(position);
  };
  for (std::uint32_t position = 0; position < rules.items.size(); ++position) {
    const RuleItem& item = rules.set->items[rules.items[position]];
    read_starts_.push_back(static_cast<std::uint32_t>(reads_.size()));
    first_slots_.push_back(static_cast<std::uint32_t>(slots_));
    const auto read = [&](FactId fact) {
      reads_.push_back({fact, last_slot[fact]});
      visit(fact, position);
    };
    for (const FactId fact : item.reads) read(fact);
    if (item.kind == RuleItem::Kind::rewrite) for_each_written(item, read);
    for_each_written(item, [&](FactId fact) {
      visit(fact, position);
      last_slot[fact] = static_cast<std::uint32_t>(slots_++);
    });
  }
  read_starts_.push_back(static_cast<std::uint32_t>(reads_.size()));
  for (const std::vector<std::uint32_t>& of_fact : visits) {
    visit_starts_.push_back(static_cast<std::uint32_t>(visits_.size()));
    visits_.insert(visits_.end(), of_fact.begin(), of_fact.end());
  }
  visit_starts_.push_back(static_cast<std::uint32_t>(visits_.size()));
}

Reevaluator::Reevaluator(const ActiveRules& rules, const RuleDependences& dependences, const Facts& facts)
    : rules_(rules),
      dependences_(dependences),
      facts_(facts),
      now_(facts),
      walk_(rules, now_),
      differs_(facts.values.size(), 0),
      holds_(facts.values.size(), RuleDependences::kNoSlot),
      to_visit_((rules.items.size() + 63) / 64, 0) {
  written_.reserve(dependences.slots());
  for (std::uint32_t position = 0; position < rules.items.size(); ++position) {
    const RuleItem& item = rules.set->items[rules.items[position]];
    if (walk_.step(item)) violated_.push_back(position);
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
    for (const std::uint32_t position : dependences_.visits(change.fact))
      to_visit_[position / 64] |= std::uint64_t{1} << (position % 64);
  }
  std::vector<std::uint32_t> items;
  auto known = violated_.cbegin();
  const auto take_known = [&](std::uint32_t before) {
    for (; known != violated_.cend() && *known < before; ++known) items.push_back(rules_.items[*known]);
  };
  for (std::size_t word = 0; word < to_visit_.size(); ++word) {
    // What is visited later lies behind, in this word or in one to come.
    while (to_visit_[word] != 0) {
      const auto position =
          static_cast<std::uint32_t>(64 * word + static_cast<std::size_t>(std::countr_zero(to_visit_[word])));
      to_visit_[word] &= to_visit_[word] - 1;
      const RuleItem& item = rules_.set->items[rules_.items[position]];
      if (!is_affected(position)) {
        for_each_written(item, [this](FactId fact) { differs_[fact] = 0; });
        continue;
      }
      take_known(position);
      if (known != violated_.cend() && *known == position) ++known;
      bring_up_to_date(position);
      if (walk_.step(item)) items.push_back(rules_.items[position]);
      compare_written(position);
    }
  }
  take_known(static_cast<std::uint32_t>(rules_.items.size()));
  reset();
  return items;
}

bool Reevaluator::is_affected(std::uint32_t position) const {
  const auto reads = dependences_.reads(position);
  return std::any_of(reads.begin(), reads.end(),
                     [this](const RuleDependences::Read& read) { return differs_[read.fact] != 0; });
}

void Reevaluator::bring_up_to_date(std::uint32_t position) {
  for (const RuleDependences::Read& read : dependences_.reads(position)) {
    if (holds_[read.fact] == read.slot) continue;
    now_.values[read.fact] = written_[read.slot];
    holds_[read.fact] = read.slot;
    touched_.push_back(read.fact);
  }
}

void Reevaluator::compare_written(std::uint32_t position) {
  std::uint32_t slot = dependences_.first_slot(position);
  for_each_written(rules_.set->items[rules_.items[position]], [&](FactId fact) {
    differs_[fact] = identical(now_.values[fact], written_[slot]) ? 0 : 1;
    holds_[fact] = slot++;
    touched_.push_back(fact);
    if (differs_[fact] != 0) visit_readers(fact, position);
  });
}

void Reevaluator::visit_readers(FactId fact, std::uint32_t after) {
  const auto visits = dependences_.visits(fact);
  for (auto at = std::upper_bound(visits.begin(), visits.end(), after); at != visits.end(); ++at)
    to_visit_[*at / 64] |= std::uint64_t{1} << (*at % 64);
}

void Reevaluator::reset() {
  for (const FactId fact : touched_) {
    now_.values[fact] = facts_.values[fact];
    differs_[fact] = 0;
    holds_[fact] = RuleDependences::kNoSlot;
  }
  touched_.clear();
}

}  // namespace capstan
