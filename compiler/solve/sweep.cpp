#include "compiler/solve/sweep.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>

#include "compiler/constraints/encode.h"

namespace capstan {
namespace {

constexpr std::size_t kMostCubes = 20'000;

bool excludes(const RuleItem& item) {
  return item.severity == Severity::error && item.finding != FindingKind::advice;
}

/// Cubes of all reasons with the walk over the axes that counts and lists points.
class Grid {
 public:
  explicit Grid(const Sweep& sweep) : sweep_(sweep) {
    for (std::size_t reason = 0; reason < sweep.reasons.size(); ++reason) {
      for (const Cube& cube : sweep.reasons[reason].cubes) {
        Entry entry{reason, &cube, 0};
        for (std::size_t axis = 0; axis < cube.size(); ++axis) {
          if (cube[axis] >= 0) entry.last_axis = axis + 1;
        }
        entries_.push_back(entry);
      }
    }
    rest_.assign(sweep.axes.size() + 1, 1);
    for (std::size_t axis = sweep.axes.size(); axis-- > 0;)
      rest_[axis] = rest_[axis + 1] * sweep.axes[axis].values.size();
  }

  /// Points per first reason; the last entry counts the legal ones.
  std::vector<std::uint64_t> count() {
    std::vector<std::uint32_t> alive(entries_.size());
    for (std::uint32_t i = 0; i < alive.size(); ++i) alive[i] = i;
    return count_from(0, alive);
  }

  bool list(std::vector<std::uint32_t>& point, std::size_t axis, const std::vector<std::uint32_t>& alive,
            const std::function<bool(const std::vector<std::uint32_t>&)>& take) const {
    for (const std::uint32_t entry : alive) {
      if (entries_[entry].last_axis <= axis) return true;  // all points below are excluded
    }
    if (axis == sweep_.axes.size()) return take(point);
    for (std::uint32_t value = 0; value < sweep_.axes[axis].values.size(); ++value) {
      point[axis] = value;
      if (!list(point, axis + 1, narrowed(alive, axis, value), take)) return false;
    }
    return true;
  }

  std::vector<std::uint32_t> all() const {
    std::vector<std::uint32_t> alive(entries_.size());
    for (std::uint32_t i = 0; i < alive.size(); ++i) alive[i] = i;
    return alive;
  }

 private:
  struct Entry {
    std::size_t reason;
    const Cube* cube;
    std::size_t last_axis;  // past the last axis that the cube names
  };

  std::vector<std::uint32_t> narrowed(const std::vector<std::uint32_t>& alive, std::size_t axis,
                                      std::uint32_t value) const {
    std::vector<std::uint32_t> out;
    for (const std::uint32_t entry : alive) {
      const std::int32_t wanted = (*entries_[entry].cube)[axis];
      if (wanted < 0 || static_cast<std::uint32_t>(wanted) == value) out.push_back(entry);
    }
    return out;
  }

  std::vector<std::uint64_t> count_from(std::size_t axis, const std::vector<std::uint32_t>& alive) {
    std::vector<std::uint64_t> counts(sweep_.reasons.size() + 1, 0);
    if (alive.empty()) {
      counts.back() = rest_[axis];
      return counts;
    }
    // A cube that is decided excludes everything below; only an earlier reason could still come first.
    std::size_t decided = sweep_.reasons.size();
    std::size_t earliest = sweep_.reasons.size();
    for (const std::uint32_t entry : alive) {
      earliest = std::min(earliest, entries_[entry].reason);
      if (entries_[entry].last_axis <= axis) decided = std::min(decided, entries_[entry].reason);
    }
    if (decided <= earliest && decided < sweep_.reasons.size()) {
      counts[decided] = rest_[axis];
      return counts;
    }
    std::string key = std::to_string(axis);
    for (const std::uint32_t entry : alive) key.append(reinterpret_cast<const char*>(&entry), sizeof entry);
    if (const auto known = memo_.find(key); known != memo_.end()) return known->second;
    // Values that no alive cube names behave alike.
    std::set<std::uint32_t> named;
    for (const std::uint32_t entry : alive) {
      if ((*entries_[entry].cube)[axis] >= 0)
        named.insert(static_cast<std::uint32_t>((*entries_[entry].cube)[axis]));
    }
    const auto add = [&](std::uint32_t value, std::uint64_t times) {
      const std::vector<std::uint64_t> part = count_from(axis + 1, narrowed(alive, axis, value));
      for (std::size_t i = 0; i < counts.size(); ++i) counts[i] += part[i] * times;
    };
    for (const std::uint32_t value : named) add(value, 1);
    const std::uint64_t others = sweep_.axes[axis].values.size() - named.size();
    if (others > 0) {
      std::uint32_t other = 0;
      while (named.contains(other)) ++other;
      add(other, others);
    }
    memo_.emplace(std::move(key), counts);
    return counts;
  }

  const Sweep& sweep_;
  std::vector<Entry> entries_;
  std::vector<std::uint64_t> rest_;  // points below each axis
  std::unordered_map<std::string, std::vector<std::uint64_t>> memo_;
};

/// All minimal cubes of one check. False: a limit was met.
bool find_cubes(Smt& smt, const Encoding& encoding, Term violated, const std::vector<SweepAxis>& axes,
                const std::vector<std::size_t>& used, std::vector<Cube>& cubes) {
  smt.push();
  smt.require(violated);
  bool finished = false;
  while (cubes.size() < kMostCubes) {
    const Answer answer = smt.check();
    if (answer == Answer::unsat) finished = true;
    if (answer != Answer::sat) break;
    std::vector<Term> point;
    std::vector<std::int32_t> values;
    for (const std::size_t axis : used) {
      for (std::size_t value = 0; value < axes[axis].values.size(); ++value) {
        const Term term = encoding.chosen(axes[axis].key, value);
        if (!smt.value(term)) continue;
        point.push_back(term);
        values.push_back(static_cast<std::int32_t>(value));
        break;
      }
    }
    // The smallest part of the point with which the check is violated whatever the other axes say.
    smt.pop();
    smt.push();
    smt.require(smt.negate(violated));
    std::vector<Term> core;
    const Answer minimal = smt.minimal_core(point, core);
    smt.pop();
    smt.push();
    if (minimal == Answer::sat) break;
    Cube cube(axes.size(), -1);
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::find(core.begin(), core.end(), point[i]) != core.end()) cube[used[i]] = values[i];
    }
    cubes.push_back(std::move(cube));
    smt.require(violated);
    for (const Cube& known : cubes) {
      std::vector<Term> parts;
      for (std::size_t axis = 0; axis < axes.size(); ++axis) {
        if (known[axis] >= 0)
          parts.push_back(encoding.chosen(axes[axis].key, static_cast<std::size_t>(known[axis])));
      }
      smt.require(smt.negate(smt.all(std::move(parts))));
    }
  }
  smt.pop();
  return finished;
}

}  // namespace

Sweep sweep(const Subject& subject, std::vector<SweepAxis> axes, SmtOptions options) {
  Sweep result;
  result.points = 1;
  for (const SweepAxis& axis : axes) result.points *= axis.values.size();
  result.axes = std::move(axes);

  std::set<std::uint32_t> checks;
  for (const SweepAxis& axis : result.axes) {
    for (const std::uint32_t position : subject.index().checks_reading(axis.key)) checks.insert(position);
  }
  // What is wrong whatever the axes say excludes every point.
  for (const std::uint32_t position : violated_checks(subject)) {
    const auto& inputs = subject.index().inputs(position);
    const bool touched = std::any_of(result.axes.begin(), result.axes.end(), [&](const SweepAxis& axis) {
      return std::binary_search(inputs.begin(), inputs.end(), axis.key);
    });
    if (touched || !excludes(subject.index().item(position))) continue;
    result.reasons.push_back({position, {Cube(result.axes.size(), -1)}, 0, 0});
  }
  Smt smt(options);
  Encoding encoding(smt, subject.index(), subject.facts);
  for (const SweepAxis& axis : result.axes) {
    Domain domain;
    for (const Value& value : axis.values) domain.choices.push_back({true, false, value});
    encoding.open(axis.key, std::move(domain));
  }
  for (const std::uint32_t position : checks) {
    if (!excludes(subject.index().item(position))) continue;
    const auto& inputs = subject.index().inputs(position);
    if (std::any_of(inputs.begin(), inputs.end(), [&](FactId fact) { return subject.is_broken(fact); }))
      continue;
    const Term violated = encoding.violated(position);
    if (violated == kFalse) continue;
    std::vector<std::size_t> used;
    for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
      if (std::binary_search(inputs.begin(), inputs.end(), result.axes[axis].key)) used.push_back(axis);
    }
    SweepReason reason;
    reason.position = position;
    if (!find_cubes(smt, encoding, violated, result.axes, used, reason.cubes))
      result.answer = Answer::undecided;
    if (!reason.cubes.empty()) result.reasons.push_back(std::move(reason));
  }
  if (encoding.too_wide()) result.answer = Answer::undecided;
  std::sort(result.reasons.begin(), result.reasons.end(),
            [](const SweepReason& a, const SweepReason& b) { return a.position < b.position; });
  const std::vector<std::uint64_t> counts = Grid(result).count();
  for (std::size_t i = 0; i < result.reasons.size(); ++i) result.reasons[i].first = counts[i];
  result.legal = counts.back();
  for (SweepReason& reason : result.reasons) {
    Sweep alone;
    alone.axes = result.axes;
    alone.reasons = {reason};
    reason.excluded = Grid(alone).count()[0];
  }
  return result;
}

void for_each_legal(const Sweep& sweep, const std::function<bool(const std::vector<std::uint32_t>&)>& take) {
  const Grid grid(sweep);
  std::vector<std::uint32_t> point(sweep.axes.size(), 0);
  grid.list(point, 0, grid.all(), take);
}

}  // namespace capstan
