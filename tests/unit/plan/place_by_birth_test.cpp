#include "compiler/plan/place_by_birth.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

namespace capstan::plan {
namespace {

/// The definition, word for word: for each tenant in the order of birth, every gap between those alive.
Placement place_naively(const std::vector<Tenant>& tenants) {
  Placement placement{std::vector<std::uint64_t>(tenants.size()), 0};
  std::vector<std::size_t> placed;
  for (OpId birth = 0; placed.size() < tenants.size(); ++birth) {
    for (std::size_t index = 0; index < tenants.size(); ++index) {
      if (tenants[index].lifetime.first != birth) continue;
      std::vector<std::pair<std::uint64_t, std::uint64_t>> alive;
      for (const std::size_t other : placed) {
        if (tenants[other].lifetime.last < birth) continue;
        alive.emplace_back(placement.offsets[other], placement.offsets[other] + tenants[other].bytes);
      }
      std::sort(alive.begin(), alive.end());
      std::uint64_t end = 0, best = 0, best_gap = std::numeric_limits<std::uint64_t>::max();
      for (const auto& [first, last] : alive) {
        if (const std::uint64_t gap = first - end; gap >= tenants[index].bytes && gap < best_gap) {
          best_gap = gap;
          best = end;
        }
        end = last;
      }
      placement.offsets[index] = best_gap == std::numeric_limits<std::uint64_t>::max() ? end : best;
      placement.height = std::max(placement.height, placement.offsets[index] + tenants[index].bytes);
      placed.push_back(index);
    }
  }
  return placement;
}

TEST(PlaceByBirth, AgreesWithItsDefinition) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    std::vector<Tenant> tenants(random() % 60);
    for (Tenant& tenant : tenants) {
      tenant.lifetime.first = random() % 40;
      tenant.lifetime.last = tenant.lifetime.first + random() % (round % 2 == 0 ? 6 : 40);
      tenant.bytes = 256 * (1 + random() % 8);
    }
    const Placement expected = place_naively(tenants), found = place_by_birth(tenants);
    ASSERT_EQ(found.offsets, expected.offsets) << "round " << round;
    ASSERT_EQ(found.height, expected.height) << "round " << round;
  }
}

TEST(PlaceByBirth, AStackOfSavedActivationsHasNoGaps) {
  // 200,000 that nest, the last one to come the first to go: a search through all of those alive would take
  // minutes.
  constexpr OpId kCount = 200'000;
  std::vector<Tenant> tenants(kCount);
  for (OpId i = 0; i < kCount; ++i) tenants[i] = {{i, 2 * kCount - i}, 512};
  EXPECT_EQ(place_by_birth(tenants).height, std::uint64_t{512} * kCount);
  EXPECT_EQ(place_by_birth({}).height, 0u);
}

}  // namespace
}  // namespace capstan::plan
