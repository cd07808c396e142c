// Sets of points of a grid as decision diagrams over its axes: a node asks for the value of one axis, equal
// parts exist once. So the cost of counting and listing follows the structure of the sets, not the number of
// points.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

namespace capstan {

/// Value indices of the axes that matter; -1 elsewhere. A point that agrees is in the cube.
using Cube = std::vector<std::int32_t>;

class PointSets {
 public:
  using Set = std::uint32_t;
  static constexpr Set kNone = 0;
  static constexpr Set kAll = 1;

  PointSets() : PointSets(std::vector<std::uint64_t>()) {}
  /// Values by axis; their product fits in 64 bits.
  explicit PointSets(std::vector<std::uint64_t> sizes);

  /// The union of cubes.
  Set of_cubes(const std::vector<Cube>& cubes);
  /// `table` says for every combination of values of the `used` axes (ascending), last axis fastest, whether
  /// it is in the set.
  Set of_table(const std::vector<std::size_t>& used, const std::vector<bool>& table);

  std::uint64_t count(Set set) const { return count_first({set})[0]; }
  /// For each set the points that no earlier one has; last, the points in none.
  std::vector<std::uint64_t> count_first(const std::vector<Set>& sets) const;
  /// Calls `take` with each point in none of the sets, last axis fastest, until it returns false.
  void for_each_outside(const std::vector<Set>& sets,
                        const std::function<bool(const std::vector<std::uint32_t>&)>& take) const;

 private:
  struct Node {
    std::size_t axis;
    std::vector<Set> children;  // by value
  };
  struct Counting;

  Set node(std::size_t axis, std::vector<Set> children);
  bool list(std::vector<std::uint32_t>& point, std::size_t axis, const std::vector<Set>& alive,
            const std::function<bool(const std::vector<std::uint32_t>&)>& take) const;

  std::vector<std::uint64_t> sizes_;
  std::vector<std::uint64_t> below_;  // points from an axis on
  std::vector<Node> nodes_;           // the first two stand for kNone and kAll
  std::unordered_map<std::string, Set> known_;
};

}  // namespace capstan
