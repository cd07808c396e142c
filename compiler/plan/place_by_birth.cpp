#include "compiler/plan/place_by_birth.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <set>
#include <utility>

namespace capstan::plan {
namespace {

/// What is free below the top of a region. Gaps never touch each other or the top.
class Region {
 public:
  std::uint64_t take(std::uint64_t bytes) {
    const auto fit = by_size_.lower_bound({bytes, 0});
    if (fit == by_size_.end()) {
      top_ += bytes;
      return top_ - bytes;
    }
    const auto [size, offset] = *fit;
    remove(offset, size);
    if (size > bytes) add(offset + bytes, size - bytes);
    return offset;
  }

  void release(std::uint64_t offset, std::uint64_t bytes) {
    std::uint64_t end = offset + bytes;
    const auto after = by_offset_.lower_bound(offset);
    if (after != by_offset_.begin()) {
      const auto [before, size] = *std::prev(after);
      if (before + size == offset) {
        remove(before, size);
        offset = before;
      }
    }
    if (const auto next = by_offset_.find(end); next != by_offset_.end()) {
      const std::uint64_t size = next->second;
      remove(end, size);
      end += size;
    }
    if (end == top_)
      top_ = offset;
    else
      add(offset, end - offset);
  }

 private:
  void add(std::uint64_t offset, std::uint64_t size) {
    by_offset_.emplace(offset, size);
    by_size_.emplace(size, offset);
  }
  void remove(std::uint64_t offset, std::uint64_t size) {
    by_offset_.erase(offset);
    by_size_.erase({size, offset});
  }

  std::map<std::uint64_t, std::uint64_t> by_offset_;           // size of each gap
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // the same gaps as (size, offset)
  std::uint64_t top_ = 0;
};

}  // namespace

Placement place_by_birth(const std::vector<Tenant>& tenants) {
  std::vector<std::size_t> order(tenants.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return tenants[a].lifetime.first < tenants[b].lifetime.first;
  });
  Placement placement;
  placement.offsets.resize(tenants.size());
  Region region;
  using Death = std::pair<OpId, std::size_t>;
  std::priority_queue<Death, std::vector<Death>, std::greater<>> deaths;
  for (const std::size_t index : order) {
    const Tenant& tenant = tenants[index];
    while (!deaths.empty() && deaths.top().first < tenant.lifetime.first) {
      const std::size_t dead = deaths.top().second;
      region.release(placement.offsets[dead], tenants[dead].bytes);
      deaths.pop();
    }
    placement.offsets[index] = region.take(tenant.bytes);
    placement.height = std::max(placement.height, placement.offsets[index] + tenant.bytes);
    deaths.emplace(tenant.lifetime.last, index);
  }
  return placement;
}

}  // namespace capstan::plan
