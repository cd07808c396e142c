#include "compiler/solve/sweep.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr std::size_t kMostCubes = 20'000;
constexpr std::size_t kMostTriedBeside = 64;  // values of an axis
constexpr std::size_t kMostChoices = 200;     // of one open key

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

/// Numbers worth trying depend on other keys: an open key gets those for every value of the axes beside it.
std::vector<OpenKey> keys_to_fill(const Subject& subject, const std::vector<SweepAxis>& axes,
                                  const std::vector<FactId>& open) {
  std::vector<OpenKey> keys = open_keys(subject, open);
  for (OpenKey& key : keys) {
    const std::vector<FactId>& mates = subject.book.candidates.mates(key.fact);
    for (const SweepAxis& axis : axes) {
      if (std::find(mates.begin(), mates.end(), axis.key) == mates.end()) continue;
      for (std::size_t i = 0; i < axis.values.size() && i < kMostTriedBeside; ++i) {
        const Subject at(subject.config, subject.book,
                         with_changes(subject.facts, {{axis.key, true, axis.values[i]}}));
        for (const OpenKey& there : open_keys(at, {key.fact})) {
          for (const Choice& choice : there.domain.choices) {
            const bool known =
                std::any_of(key.domain.choices.begin(), key.domain.choices.end(), [&](const Choice& one) {
                  return one.set == choice.set && one.unknown == choice.unknown && one.value == choice.value;
                });
            if (!known && key.domain.choices.size() < kMostChoices) key.domain.choices.push_back(choice);
          }
        }
      }
    }
  }
  return keys;
}

/// Points at which open keys cannot be filled. Both kinds of points are found as cubes: from an impossible
/// point the part of it that is impossible alone, from a possible one the part that its filling depends on.
class FilledPoints {
 public:
  FilledPoints(const Subject& subject, Sweep& result, const std::vector<OpenKey>& open,
               const SmtOptions& options)
      : subject_(subject),
        result_(result),
        open_(open),
        smt_(options),
        encoding_(smt_, subject.index(), subject.facts),
        map_(options) {
    for (const SweepAxis& axis : result.axes) {
      Domain domain;
      for (const Value& value : axis.values) domain.choices.push_back({true, false, value});
      encoding_.open(axis.key, std::move(domain));
    }
    std::set<std::uint32_t> checks;
    for (const OpenKey& key : open) {
      encoding_.open(key.fact, key.domain);
      for (const std::uint32_t position : subject.index().checks_reading(key.fact)) {
        const auto& inputs = subject.index().inputs(position);
        if (forbids(subject.index().item(position)) &&
            std::none_of(inputs.begin(), inputs.end(), [&](FactId fact) { return subject.is_broken(fact); }))
          checks.insert(position);
      }
    }
    checks_.assign(checks.begin(), checks.end());
  }

  /// Adds the reasons; false: a limit was met.
  bool run() {
    std::vector<Term> hold;
    for (const std::uint32_t check : checks_) {
      const Term holds = smt_.negate(encoding_.violated(check));
      if (holds == kTrue) continue;
      const Term name = smt_.variable("check " + std::to_string(check));
      smt_.require(smt_.implies(name, holds));
      named_.emplace_back(check, name);
      hold.push_back(holds);
    }
    const Term all_hold = smt_.all(std::move(hold));
    for (std::size_t axis = 0; axis < result_.axes.size(); ++axis) {
      const bool read = std::any_of(named_.begin(), named_.end(), [&](const auto& check) {
        return reads_any(subject_.index(), check.first, {result_.axes[axis].key});
      });
      if (!read) continue;
      used_.push_back(axis);
      slots_.emplace_back();
      for (std::size_t value = 0; value < result_.axes[axis].values.size(); ++value)
        slots_.back().push_back(map_.variable(std::to_string(axis) + "=" + std::to_string(value)));
      map_.require_exactly_one(slots_.back());
    }
    for (std::size_t found = 0; found < kMostCubes; ++found) {
      const Answer next = map_.check();
      if (next == Answer::unsat) return !encoding_.too_wide();
      if (next == Answer::undecided) return false;
      std::vector<std::size_t> values;
      std::vector<Term> point;
      for (std::size_t i = 0; i < used_.size(); ++i) {
        std::size_t value = 0;
        while (!map_.value(slots_[i][value])) ++value;
        values.push_back(value);
        point.push_back(encoding_.chosen(result_.axes[used_[i]].key, value));
      }
      smt_.push();
      smt_.require(all_hold);
      const Answer answer = smt_.check(point);
      std::vector<Term> core;
      bool settled = answer != Answer::undecided;
      if (answer == Answer::unsat) {
        settled = smt_.minimal_core(point, core) == Answer::unsat;
        smt_.pop();
        if (settled) add(cube_of(point, values, core), rules_against(core));
      } else if (answer == Answer::sat) {
        std::vector<Term> filling = state();
        settled = confirmed(values);
        smt_.pop();
        if (settled) {
          smt_.push();
          for (const Term term : filling) smt_.require(term);
          smt_.require(smt_.negate(all_hold));
          settled = smt_.minimal_core(point, core) == Answer::unsat;
          smt_.pop();
        }
      } else {
        smt_.pop();
      }
      if (!settled) return false;
      std::vector<Term> parts;
      for (std::size_t i = 0; i < point.size(); ++i) {
        if (std::find(core.begin(), core.end(), point[i]) != core.end())
          parts.push_back(slots_[i][values[i]]);
      }
      map_.require(map_.negate(map_.all(std::move(parts))));
    }
    return false;
  }

 private:
  /// The open keys as the last model has them.
  std::vector<Term> state() {
    std::vector<Term> terms;
    for (const OpenKey& key : open_) {
      for (std::size_t i = 0; i < key.domain.choices.size(); ++i) {
        const Term chosen = encoding_.chosen(key.fact, i);
        if (smt_.value(chosen)) terms.push_back(chosen);
      }
      if (!key.domain.any_subset || !smt_.value(encoding_.is_subset(key.fact))) continue;
      terms.push_back(encoding_.is_subset(key.fact));
      for (std::size_t token = 0; token < key.domain.tokens.size(); ++token) {
        const Term member = encoding_.member(key.fact, token);
        terms.push_back(smt_.value(member) ? member : smt_.negate(member));
      }
    }
    return terms;
  }

  /// The evaluator sees no check violated at the point with the filling of the last model.
  bool confirmed(const std::vector<std::size_t>& values) const {
    std::vector<Assignment> changes;
    for (std::size_t i = 0; i < used_.size(); ++i) {
      const SweepAxis& axis = result_.axes[used_[i]];
      changes.push_back({axis.key, true, axis.values[values[i]]});
    }
    for (const OpenKey& key : open_) {
      const Choice choice = encoding_.decode(key.fact);
      if (!choice.unknown) changes.push_back({key.fact, choice.set, choice.value});
    }
    const std::vector<std::uint32_t> violated = violated_checks(subject_, changes);
    return std::none_of(checks_.begin(), checks_.end(), [&](std::uint32_t check) {
      return std::binary_search(violated.begin(), violated.end(), check);
    });
  }

  Cube cube_of(const std::vector<Term>& point, const std::vector<std::size_t>& values,
               const std::vector<Term>& core) const {
    Cube cube(result_.axes.size(), -1);
    for (std::size_t i = 0; i < point.size(); ++i) {
      if (std::find(core.begin(), core.end(), point[i]) != core.end())
        cube[used_[i]] = static_cast<std::int32_t>(values[i]);
    }
    return cube;
  }

  /// A smallest set of checks that cannot all hold there; all of them where a limit was met.
  std::vector<std::uint32_t> rules_against(const std::vector<Term>& core) {
    std::vector<Term> names;
    for (const auto& [check, name] : named_) names.push_back(name);
    std::vector<Term> needed;
    smt_.push();
    for (const Term term : core) smt_.require(term);
    const bool minimal = smt_.minimal_core(names, needed) == Answer::unsat;
    smt_.pop();
    std::vector<std::uint32_t> rules;
    for (const auto& [check, name] : named_) {
      if (!minimal || std::find(needed.begin(), needed.end(), name) != needed.end()) rules.push_back(check);
    }
    return rules;
  }

  void add(Cube cube, std::vector<std::uint32_t> rules) {
    for (SweepReason& reason : result_.reasons) {
      if (reason.together == rules) {
        reason.cubes.push_back(std::move(cube));
        return;
      }
    }
    const std::uint32_t first = rules.front();
    result_.reasons.push_back({first, std::move(rules), {std::move(cube)}, 0, 0});
  }

  const Subject& subject_;
  Sweep& result_;
  const std::vector<OpenKey>& open_;
  Smt smt_;
  Encoding encoding_;
  Smt map_;
  std::vector<std::uint32_t> checks_;
  std::vector<std::pair<std::uint32_t, Term>> named_;
  std::vector<std::size_t> used_;         // axes that the checks read
  std::vector<std::vector<Term>> slots_;  // of map_: by used axis and value
};

}  // namespace

Sweep sweep(const Subject& whole, std::vector<SweepAxis> axes, const std::vector<FactId>& open,
            const SmtOptions& options) {
  Sweep result;
  std::vector<FactId> to_fill;
  for (const FactId fact : open) {
    const bool swept =
        std::any_of(axes.begin(), axes.end(), [fact](const SweepAxis& axis) { return axis.key == fact; });
    if (!swept) to_fill.push_back(fact);
  }
  const Subject subject(whole.config, whole.book, with_open(whole.facts, to_fill));
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
    if (touched || !forbids(subject.index().item(position)) || reads_any(subject.index(), position, to_fill))
      continue;
    result.reasons.push_back({position, {}, {Cube(result.axes.size(), -1)}, 0, 0});
  }
  Smt smt(options);
  Encoding encoding(smt, subject.index(), subject.facts);
  for (const SweepAxis& axis : result.axes) {
    Domain domain;
    for (const Value& value : axis.values) domain.choices.push_back({true, false, value});
    encoding.open(axis.key, std::move(domain));
  }
  for (const std::uint32_t position : checks) {
    if (!forbids(subject.index().item(position)) || reads_any(subject.index(), position, to_fill)) continue;
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
  if (!to_fill.empty()) {
    const std::vector<OpenKey> keys = keys_to_fill(whole, result.axes, to_fill);
    if (!FilledPoints(subject, result, keys, options).run()) result.answer = Answer::undecided;
  }
  std::sort(result.reasons.begin(), result.reasons.end(), [](const SweepReason& a, const SweepReason& b) {
    return std::tuple(!a.together.empty(), a.position, a.together) <
           std::tuple(!b.together.empty(), b.position, b.together);
  });
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
