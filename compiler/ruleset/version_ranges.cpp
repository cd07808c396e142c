#include "compiler/ruleset/version_ranges.h"

#include <algorithm>

#include "compiler/ruleset/resolve.h"

namespace capstan {
namespace {

std::vector<ResolvedBound> bounds_on(const std::vector<ResolvedRange>& ranges, const std::string& component) {
  std::vector<ResolvedBound> bounds;
  for (const ResolvedRange& range : ranges) {
    if (range.component == component) bounds.insert(bounds.end(), range.bounds.begin(), range.bounds.end());
  }
  return bounds;
}

/// The next version after, for trying the inside of open bounds: versions are dense enough that a stage
/// number more lies between any two that are written down.
Version after(Version version) {
  ++version.stage_number;
  return version;
}
Version before(Version version) {
  --version.stage_number;
  return version;
}

/// Some version satisfies all bounds: if any does, then one at or beside a bound does.
bool satisfiable(const std::vector<ResolvedBound>& bounds) {
  if (bounds.empty()) return true;
  const auto all_hold = [&](const Version& version) {
    return std::all_of(bounds.begin(), bounds.end(),
                       [&](const ResolvedBound& bound) { return holds(bound, version); });
  };
  return std::any_of(bounds.begin(), bounds.end(), [&](const ResolvedBound& bound) {
    return all_hold(bound.version) || all_hold(after(bound.version)) || all_hold(before(bound.version));
  });
}

}  // namespace

bool holds(const ResolvedBound& bound, const Version& version) {
  switch (bound.comparison) {
    case Comparison::less:
      return version < bound.version;
    case Comparison::less_equal:
      return version <= bound.version;
    case Comparison::equal:
      return version == bound.version;
    case Comparison::greater_equal:
      return version >= bound.version;
    case Comparison::greater:
      return version > bound.version;
    case Comparison::not_equal:
      return version != bound.version;
  }
  return false;
}

bool applies_to(const std::vector<ResolvedRange>& ranges, const Stack& stack) {
  return std::all_of(ranges.begin(), ranges.end(), [&](const ResolvedRange& range) {
    const Version* version = stack.version_of(range.component);
    if (version == nullptr) return false;
    return std::all_of(range.bounds.begin(), range.bounds.end(),
                       [&](const ResolvedBound& bound) { return holds(bound, *version); });
  });
}

bool can_overlap(const std::vector<ResolvedRange>& a, const std::vector<ResolvedRange>& b) {
  std::vector<ResolvedRange> both = a;
  both.insert(both.end(), b.begin(), b.end());
  return std::all_of(both.begin(), both.end(), [&](const ResolvedRange& range) {
    return satisfiable(bounds_on(both, range.component));
  });
}

const char* enforcer_name(Enforcer enforcer) {
  switch (enforcer) {
    case Enforcer::core:
      return "core";
    case Enforcer::bridge:
      return "bridge";
    case Enforcer::megatron_lm:
      return "megatron-lm";
    case Enforcer::transformer_engine:
      return "transformer-engine";
    case Enforcer::torch:
      return "torch";
    case Enforcer::nccl:
      return "nccl";
    case Enforcer::capstan:
      return "capstan";
  }
  return "?";
}

bool runs(std::string_view frontend, Enforcer enforcer) {
  switch (enforcer) {
    case Enforcer::bridge:
      return frontend == "bridge";
    case Enforcer::megatron_lm:
      return frontend == "megatron-lm";
    default:
      return true;
  }
}

bool is_active(const RuleItem& item, const Stack& stack) {
  if (item.kind != RuleItem::Kind::define && !runs(stack.frontend, item.enforcer)) return false;
  if (!item.frontends.empty() &&
      std::find(item.frontends.begin(), item.frontends.end(), stack.frontend) == item.frontends.end()) {
    return false;
  }
  return applies_to(item.applies, stack);
}

ActiveRules select(const RuleSet& rules, const Stack& stack) {
  ActiveRules active;
  active.set = &rules;
  for (std::uint32_t index = 0; index < rules.items.size(); ++index) {
    if (is_active(rules.items[index], stack)) active.items.push_back(index);
  }
  return active;
}

}  // namespace capstan
