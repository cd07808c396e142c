#include <algorithm>
#include <iterator>

#include "compiler/constraints/encode.h"

namespace capstan {
namespace {

using Inputs = std::vector<FactId>;
constexpr std::uint32_t kAbsent = 0xffffffffu;

void join(Inputs& into, const Inputs& other) {
  Inputs merged;
  std::set_union(into.begin(), into.end(), other.begin(), other.end(), std::back_inserter(merged));
  into = std::move(merged);
}

}  // namespace

RuleIndex::RuleIndex(const ActiveRules& rules) : rules_(rules) {
  // What each fact depends on at this point of the walk; a fact nobody wrote depends on itself.
  std::unordered_map<FactId, Inputs> depends;
  inputs_.reserve(rules.items.size());
  if (rules.set != nullptr) position_of_item_.assign(rules.set->items.size(), kAbsent);
  for (std::uint32_t position = 0; position < rules.items.size(); ++position) {
    const RuleItem& entry = item(position);
    position_of_item_[rules.items[position]] = position;
    Inputs inputs;
    for (const FactId fact : entry.reads) {
      const auto known = depends.find(fact);
      join(inputs, known == depends.end() ? Inputs{fact} : known->second);
    }
    switch (entry.kind) {
      case RuleItem::Kind::check:
        checks_.push_back(position);
        for (const FactId fact : inputs) readers_[fact].push_back(position);
        break;
      case RuleItem::Kind::define:
        writers_[entry.defined].push_back(position);
        depends[entry.defined] = inputs;
        break;
      case RuleItem::Kind::rewrite:
        for (const ResolvedAction& action : entry.assignments) {
          auto& writers = writers_[action.key];
          if (writers.empty() || writers.back() != position) writers.push_back(position);
          auto [known, fresh] = depends.try_emplace(action.key, Inputs{action.key});
          join(known->second, inputs);
        }
        break;
    }
    inputs_.push_back(std::move(inputs));
  }
}

std::optional<std::uint32_t> RuleIndex::last_writer(FactId fact, std::uint32_t position) const {
  const auto found = writers_.find(fact);
  if (found == writers_.end()) return std::nullopt;
  const auto after = std::lower_bound(found->second.begin(), found->second.end(), position);
  if (after == found->second.begin()) return std::nullopt;
  return *std::prev(after);
}

const std::vector<FactId>& RuleIndex::inputs(std::uint32_t position) const {
  return inputs_.at(position);
}

std::optional<std::uint32_t> RuleIndex::position_of(std::uint32_t item) const {
  if (item >= position_of_item_.size() || position_of_item_[item] == kAbsent) return std::nullopt;
  return position_of_item_[item];
}

const std::vector<std::uint32_t>& RuleIndex::checks_reading(FactId fact) const {
  static const std::vector<std::uint32_t> none;
  const auto found = readers_.find(fact);
  return found == readers_.end() ? none : found->second;
}

}  // namespace capstan
