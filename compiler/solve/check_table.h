// One check judged at every combination of values of some facts. Only the items of the rule set that the
// check depends on are walked, so a combination costs microseconds; relations that calculate with several
// keys have no shorter description than their table, and a solver would find it combination by combination.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/ruleset/rule.h"
#include "compiler/solve/point_set.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct SweepAxis {
  FactId key = 0;
  std::vector<Value> values;  ///< distinct, at least one
};

class CheckTable {
 public:
  /// `used`: the axes that the check depends on, ascending.
  CheckTable(const Subject& subject, std::uint32_t position, const std::vector<SweepAxis>& axes,
             std::vector<std::size_t> used);

  const std::vector<std::size_t>& used() const { return used_; }
  /// Combinations.
  std::uint64_t size() const { return size_; }
  /// An item that the check depends on calculates with, or orders, what the axes say.
  bool calculates() const;
  /// Whether the check is decidedly violated, last axis fastest.
  std::vector<bool> violated() const;

 private:
  const Subject& subject_;
  const std::vector<SweepAxis>& axes_;
  std::vector<std::size_t> used_;
  std::uint64_t size_ = 1;
  std::vector<std::uint32_t> items_;  // positions in order; the check is the last
};

/// Minimal cubes over all axes that together are the table; `most` at most, in the order of the first point
/// that each adds. `complete` tells whether these are all.
std::vector<Cube> cubes_of_table(const std::vector<SweepAxis>& axes, const std::vector<std::size_t>& used,
                                 const std::vector<bool>& table, std::size_t most, bool& complete);

}  // namespace capstan
