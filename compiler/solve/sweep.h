// Which points of a grid of key values are legal. Symbolic: each rule's exclusions are found over the few
// keys that matter to it, as cubes by core minimisation or, for rules that calculate, as the table of their
// own keys; points are counted by walking keys, not points. Points are excluded by findings of severity
// error.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/check_table.h"
#include "compiler/solve/point_set.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct SweepReason {
  std::uint32_t position = 0;  ///< the check; of several the first
  /// Where open keys are read: the rules that together leave no value for them. A point that several such
  /// sets exclude counts for those that were found to exclude it.
  std::vector<std::uint32_t> together;
  std::vector<Cube> cubes;                ///< minimal; their union is what is excluded, if they are all
  bool all_cubes = true;                  ///< false: what is excluded has more cubes than are listed
  PointSets::Set set = PointSets::kNone;  ///< what is excluded, in Sweep::sets
  std::uint64_t excluded = 0;             ///< points in the cubes
  std::uint64_t first = 0;                ///< of these, points that no earlier reason excludes
};

struct Sweep {
  std::vector<SweepAxis> axes;
  PointSets sets;
  std::uint64_t points = 0, legal = 0;
  std::vector<SweepReason> reasons;  ///< framework order; `first` of all and `legal` add up to `points`
  Answer answer =
      Answer::sat;  ///< undecided: a limit was met, the counts are lower bounds of what is excluded
};

inline constexpr std::uint64_t kMostSweepPoints = std::uint64_t{1} << 53;

/// `axes` span at most kMostSweepPoints points. A point is legal when the `open` keys can be filled there.
Sweep sweep(const Subject& subject, std::vector<SweepAxis> axes, const std::vector<FactId>& open,
            const SmtOptions& options);

/// Calls `take` with the value indices of each legal point, last axis fastest, until it returns false.
void for_each_legal(const Sweep& sweep, const std::function<bool(const std::vector<std::uint32_t>&)>& take);

}  // namespace capstan
