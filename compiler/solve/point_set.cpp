#include "compiler/solve/point_set.h"

#include <algorithm>
#include <set>
#include <utility>

namespace capstan {
namespace {

void append(std::string& key, std::uint64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

PointSets::PointSets(std::vector<std::uint64_t> sizes) : sizes_(std::move(sizes)), nodes_(2) {
  below_.assign(sizes_.size() + 1, 1);
  for (std::size_t axis = sizes_.size(); axis-- > 0;) below_[axis] = below_[axis + 1] * sizes_[axis];
  nodes_[kNone].axis = nodes_[kAll].axis = sizes_.size();
}

PointSets::Set PointSets::node(std::size_t axis, std::vector<Set> children) {
  if (std::all_of(children.begin(), children.end(), [&](Set child) { return child == children.front(); }))
    return children.front();
  std::string key;
  append(key, axis);
  for (const Set child : children) append(key, child);
  const auto [found, fresh] = known_.try_emplace(std::move(key), static_cast<Set>(nodes_.size()));
  if (fresh) nodes_.push_back({axis, std::move(children)});
  return found->second;
}

PointSets::Set PointSets::of_cubes(const std::vector<Cube>& cubes) {
  std::vector<std::size_t> ends;  // past the last axis that a cube names
  for (const Cube& cube : cubes) {
    std::size_t end = cube.size();
    while (end > 0 && cube[end - 1] < 0) --end;
    ends.push_back(end);
  }
  std::unordered_map<std::string, Set> memo;
  const std::function<Set(std::size_t, const std::vector<std::uint32_t>&)> build =
      [&](std::size_t axis, const std::vector<std::uint32_t>& alive) -> Set {
    if (alive.empty()) return kNone;
    if (std::any_of(alive.begin(), alive.end(), [&](std::uint32_t cube) { return ends[cube] <= axis; }))
      return kAll;
    std::string key = std::to_string(axis) + ' ';
    for (const std::uint32_t cube : alive) append(key, cube);
    if (const auto found = memo.find(key); found != memo.end()) return found->second;
    std::vector<std::vector<std::uint32_t>> named(sizes_[axis]);
    std::vector<std::uint32_t> others;
    for (const std::uint32_t cube : alive) {
      if (cubes[cube][axis] < 0)
        others.push_back(cube);
      else
        named[static_cast<std::size_t>(cubes[cube][axis])].push_back(cube);
    }
    // Values that no cube names behave alike.
    const Set rest = build(axis + 1, others);
    std::vector<Set> children(sizes_[axis], rest);
    for (std::size_t value = 0; value < named.size(); ++value) {
      if (named[value].empty()) continue;
      std::vector<std::uint32_t> here;
      std::merge(named[value].begin(), named[value].end(), others.begin(), others.end(),
                 std::back_inserter(here));
      children[value] = build(axis + 1, here);
    }
    const Set built = node(axis, std::move(children));
    memo.emplace(std::move(key), built);
    return built;
  };
  std::vector<std::uint32_t> all(cubes.size());
  for (std::uint32_t i = 0; i < all.size(); ++i) all[i] = i;
  return build(0, all);
}

PointSets::Set PointSets::of_table(const std::vector<std::size_t>& used, const std::vector<bool>& table) {
  // From the last axis to the first: each pass turns the values of one axis into nodes.
  std::vector<Set> level(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) level[i] = table[i] ? kAll : kNone;
  for (std::size_t at = used.size(); at-- > 0;) {
    const std::size_t size = sizes_[used[at]];
    std::vector<Set> above(level.size() / size);
    for (std::size_t i = 0; i < above.size(); ++i) {
      const auto first = level.begin() + static_cast<std::ptrdiff_t>(i * size);
      above[i] = node(used[at], std::vector<Set>(first, first + static_cast<std::ptrdiff_t>(size)));
    }
    level = std::move(above);
  }
  return level.front();
}

/// One walk over several sets at once.
struct PointSets::Counting {
  using State = std::vector<std::pair<std::uint32_t, Set>>;  // sets that can still say something, by index
  const PointSets& sets;
  std::size_t number;
  std::unordered_map<std::string, std::vector<std::uint64_t>> memo;

  /// Sets without points say nothing; behind one that has all points nobody is first.
  static void add(State& state, std::uint32_t index, Set set) {
    if (set == kNone || (!state.empty() && state.back().second == kAll)) return;
    state.emplace_back(index, set);
  }
  /// The first axis that one of the sets asks for.
  std::size_t axis_of(const State& state) const {
    std::size_t axis = sets.sizes_.size();
    for (const auto& [index, set] : state) axis = std::min(axis, sets.nodes_[set].axis);
    return axis;
  }
  /// Of the points from axis_of() on.
  std::vector<std::uint64_t> count(const State& state) {
    const std::size_t axis = axis_of(state);
    std::vector<std::uint64_t> counts(number + 1, 0);
    if (axis == sets.sizes_.size()) {
      counts[state.empty() ? number : state.front().first] = 1;
      return counts;
    }
    std::string key;
    for (const auto& [index, set] : state) append(key, (std::uint64_t{index} << 32) | set);
    if (const auto known = memo.find(key); known != memo.end()) return known->second;
    for (std::size_t value = 0; value < sets.sizes_[axis]; ++value) {
      State below;
      for (const auto& [index, set] : state) {
        const Node& node = sets.nodes_[set];
        add(below, index, node.axis == axis ? node.children[value] : set);
      }
      const std::vector<std::uint64_t> part = count(below);
      const std::uint64_t times = sets.below_[axis + 1] / sets.below_[axis_of(below)];
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += part[i] * times;
    }
    memo.emplace(std::move(key), counts);
    return counts;
  }
};

std::vector<std::uint64_t> PointSets::count_first(const std::vector<Set>& sets) const {
  Counting counting{*this, sets.size(), {}};
  Counting::State state;
  for (std::uint32_t index = 0; index < sets.size(); ++index) Counting::add(state, index, sets[index]);
  std::vector<std::uint64_t> counts = counting.count(state);
  const std::uint64_t times = below_[0] / below_[counting.axis_of(state)];
  for (std::uint64_t& count : counts) count *= times;
  return counts;
}

bool PointSets::list(std::vector<std::uint32_t>& point, std::size_t axis, const std::vector<Set>& alive,
                     const std::function<bool(const std::vector<std::uint32_t>&)>& take) const {
  if (axis == sizes_.size()) return take(point);
  std::vector<Set> below;
  for (std::uint32_t value = 0; value < sizes_[axis]; ++value) {
    point[axis] = value;
    below.clear();
    bool all = false;
    for (const Set set : alive) {
      const Set child = nodes_[set].axis == axis ? nodes_[set].children[value] : set;
      all = all || child == kAll;
      if (child != kNone) below.push_back(child);
    }
    if (!all && !list(point, axis + 1, below, take)) return false;
  }
  return true;
}

void PointSets::for_each_outside(const std::vector<Set>& sets,
                                 const std::function<bool(const std::vector<std::uint32_t>&)>& take) const {
  std::vector<Set> alive;
  for (const Set set : sets) {
    if (set == kAll) return;
    if (set != kNone) alive.push_back(set);
  }
  std::vector<std::uint32_t> point(sizes_.size(), 0);
  list(point, 0, alive, take);
}

}  // namespace capstan
