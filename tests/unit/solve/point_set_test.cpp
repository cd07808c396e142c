#include "compiler/solve/point_set.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "compiler/ruleset/resolve.h"
#include "compiler/solve/sweep.h"
#include "tests/support/bound_config.h"

namespace capstan {
namespace {

/// Every point of a small grid, last axis fastest.
std::vector<std::vector<std::uint32_t>> points_of(const std::vector<std::uint64_t>& sizes) {
  std::vector<std::vector<std::uint32_t>> points{{}};
  for (const std::uint64_t size : sizes) {
    std::vector<std::vector<std::uint32_t>> longer;
    for (const auto& point : points) {
      for (std::uint32_t value = 0; value < size; ++value) {
        longer.push_back(point);
        longer.back().push_back(value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

bool in(const Cube& cube, const std::vector<std::uint32_t>& point) {
  for (std::size_t axis = 0; axis < cube.size(); ++axis) {
    if (cube[axis] >= 0 && static_cast<std::uint32_t>(cube[axis]) != point[axis]) return false;
  }
  return true;
}

// Sets made of cubes and of tables, counted and listed together, against a walk over all points.
TEST(PointSets, AgreeWithAWalkOverThePoints) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    std::vector<std::uint64_t> sizes(1 + random() % 4);
    for (std::uint64_t& size : sizes) size = 1 + random() % 4;
    const auto points = points_of(sizes);
    PointSets sets(sizes);
    std::vector<PointSets::Set> all;
    std::vector<std::vector<bool>> has;
    for (unsigned number = random() % 5; number-- > 0;) {
      std::vector<bool> members(points.size());
      if (random() % 2 == 0) {
        std::vector<Cube> cubes(random() % 5);
        for (Cube& cube : cubes) {
          for (const std::uint64_t size : sizes)
            cube.push_back(random() % 2 == 0 ? -1 : static_cast<std::int32_t>(random() % size));
        }
        for (std::size_t i = 0; i < points.size(); ++i)
          members[i] =
              std::any_of(cubes.begin(), cubes.end(), [&](const Cube& cube) { return in(cube, points[i]); });
        all.push_back(sets.of_cubes(cubes));
      } else {
        std::vector<std::size_t> used;
        std::size_t combinations = 1;
        for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
          if (random() % 3 == 0) continue;
          used.push_back(axis);
          combinations *= sizes[axis];
        }
        std::vector<bool> table(combinations);
        for (std::size_t i = 0; i < combinations; ++i) table[i] = random() % 3 == 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
          std::size_t row = 0;
          for (const std::size_t axis : used) row = row * sizes[axis] + points[i][axis];
          members[i] = table[row];
        }
        all.push_back(sets.of_table(used, table));
      }
      EXPECT_EQ(sets.count(all.back()),
                static_cast<std::uint64_t>(std::count(members.begin(), members.end(), true)));
      has.push_back(std::move(members));
    }
    std::vector<std::uint64_t> first(all.size() + 1, 0);
    std::vector<std::vector<std::uint32_t>> outside, listed;
    for (std::size_t i = 0; i < points.size(); ++i) {
      std::size_t set = 0;
      while (set < all.size() && !has[set][i]) ++set;
      ++first[set];
      if (set == all.size()) outside.push_back(points[i]);
    }
    EXPECT_EQ(sets.count_first(all), first);
    sets.for_each_outside(all, [&](const std::vector<std::uint32_t>& point) {
      listed.push_back(point);
      return true;
    });
    EXPECT_EQ(listed, outside);
  }
}

// The same set is the same number, however it was said.
TEST(PointSets, EqualSetsAreOne) {
  PointSets sets({2, 3});
  EXPECT_EQ(sets.of_cubes({{0, -1}, {1, -1}}), PointSets::kAll);
  EXPECT_EQ(sets.of_cubes({{-1, 2}}), sets.of_table({0, 1}, {false, false, true, false, false, true}));
  EXPECT_EQ(sets.of_table({1}, {false, false, false}), PointSets::kNone);
}

// Minimal cubes of a table: their union is the table, and none can be made larger.
TEST(CheckTable, CubesCoverTheTableAndAreMinimal) {
  std::mt19937 random(9);
  for (int round = 0; round < 200; ++round) {
    std::vector<SweepAxis> axes(1 + random() % 3);
    std::vector<std::uint64_t> sizes;
    std::vector<std::size_t> used;
    for (std::size_t axis = 0; axis < axes.size(); ++axis) {
      axes[axis].values.resize(1 + random() % 4);
      sizes.push_back(axes[axis].values.size());
      used.push_back(axis);
    }
    const auto points = points_of(sizes);
    std::vector<bool> table(points.size());
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = random() % 4 != 0;
    bool complete = false;
    const std::vector<Cube> cubes = cubes_of_table(axes, used, table, 1000, complete);
    EXPECT_TRUE(complete);
    const auto only_members = [&](const Cube& cube) {
      for (std::size_t i = 0; i < points.size(); ++i) {
        if (in(cube, points[i]) && !table[i]) return false;
      }
      return true;
    };
    for (std::size_t i = 0; i < points.size(); ++i) {
      EXPECT_EQ(std::any_of(cubes.begin(), cubes.end(), [&](const Cube& one) { return in(one, points[i]); }),
                table[i]);
    }
    for (const Cube& cube : cubes) {
      for (std::size_t axis = 0; axis < cube.size(); ++axis) {
        Cube larger = cube;
        larger[axis] = -1;
        EXPECT_EQ(only_members(larger), cube[axis] < 0);
      }
    }
  }
}

// 64 GPUs divide by TP x PP for 28 pairs of powers of two; 96 layers divide by 12 numbers up to 100, 6 of
// them powers of two; heads divide by TP.
TEST(CheckTable, RelationsOfThreeKeysAreCountedExactly) {
  const auto bound = bind_text(
      "[target]\nstack = \"bridge-0.4\"\n[model]\nnum_layers = 96\nhidden_size = 4096\n"
      "num_attention_heads = 32\n[cluster]\nnodes = 8\ngpus_per_node = 8\n",
      "bridge-0.4");
  const RuleBook book(*bound->schema, select(builtin_rules(), bound->stack));
  const Subject subject(bound->config, book);
  std::vector<SweepAxis> axes;
  for (const char* name : {"model.tensor_model_parallel_size", "model.pipeline_model_parallel_size",
                           "model.num_attention_heads"}) {
    SweepAxis axis;
    ASSERT_TRUE(book.rules.set->names.find(name, axis.key));
    for (int value = 1; value <= 100; ++value) axis.values.emplace_back(value);
    axes.push_back(std::move(axis));
  }
  const Sweep result = sweep(subject, axes, {}, {});
  EXPECT_EQ(result.answer, Answer::sat);
  std::uint64_t legal = 0;
  for (int tp = 1; tp <= 64; tp *= 2) {
    for (int pp = 1; tp * pp <= 64 && 96 % pp == 0; pp *= 2) {
      for (int heads = 1; heads <= 100; ++heads) legal += heads % tp == 0 ? 1 : 0;
    }
  }
  EXPECT_EQ(result.legal, legal);
}

}  // namespace
}  // namespace capstan
