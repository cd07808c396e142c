#include "compiler/solve/sweep.h"

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "compiler/constraints/encode.h"
#include "compiler/solve/domain.h"

namespace capstan {
namespace {

constexpr std::size_t kMostCubes = 20'000;
constexpr std::size_t kMostListed = 2'000;                           // cubes of a table
constexpr std::uint64_t kMostCombinations = std::uint64_t{1} << 23;  // of a table
constexpr std::size_t kMostTriedBeside = 64;                         // values of an axis
constexpr std::size_t kMostChoices = 200;                            // of one open key

/// All minimal cubes of one check. False: a limit was met.
bool find_cubes(Smt& smt, const Encoding& encoding, Term violated, const std::vector<SweepAxis>& axes,
                const std::vector<std::size_t>& used, std::size_t most, std::vector<Cube>& cubes) {
  smt.push();
  smt.require(violated);
  bool finished = false;
  while (cubes.size() < most) {
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
    SweepReason reason;
    reason.position = rules.front();
    reason.together = std::move(rules);
    reason.cubes = {std::move(cube)};
    result_.reasons.push_back(std::move(reason));
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
  std::vector<std::uint64_t> sizes;
  for (const SweepAxis& axis : result.axes) sizes.push_back(axis.values.size());
  result.sets = PointSets(std::move(sizes));

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
    SweepReason everywhere;
    everywhere.position = position;
    everywhere.cubes = {Cube(result.axes.size(), -1)};
    result.reasons.push_back(std::move(everywhere));
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
    std::vector<std::size_t> used;
    for (std::size_t axis = 0; axis < result.axes.size(); ++axis) {
      if (std::binary_search(inputs.begin(), inputs.end(), result.axes[axis].key)) used.push_back(axis);
    }
    SweepReason reason;
    reason.position = position;
    const CheckTable table(subject, position, result.axes, used);
    const bool calculates = used.size() > 1 && table.calculates();
    // A transcript wants the rule as a question.
    if (calculates && table.size() <= kMostCombinations && !options.transcript) {
      const std::vector<bool> violated = table.violated();
      reason.set = result.sets.of_table(used, violated);
      reason.cubes = cubes_of_table(result.axes, used, violated, kMostListed, reason.all_cubes);
      if (!reason.cubes.empty()) result.reasons.push_back(std::move(reason));
      continue;
    }
    const Term violated = encoding.violated(position);
    if (violated == kFalse) continue;
    // A relation too large for its table has no end of cubes either: some of them, and that there are more.
    const std::size_t most = calculates ? kMostListed : kMostCubes;
    if (!find_cubes(smt, encoding, violated, result.axes, used, most, reason.cubes))
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
  std::vector<PointSets::Set> sets;
  for (SweepReason& reason : result.reasons) {
    if (reason.set == PointSets::kNone) reason.set = result.sets.of_cubes(reason.cubes);
    reason.excluded = result.sets.count(reason.set);
    sets.push_back(reason.set);
  }
  const std::vector<std::uint64_t> counts = result.sets.count_first(sets);
  for (std::size_t i = 0; i < result.reasons.size(); ++i) result.reasons[i].first = counts[i];
  result.legal = counts.back();
  return result;
}

void for_each_legal(const Sweep& sweep, const std::function<bool(const std::vector<std::uint32_t>&)>& take) {
  std::vector<PointSets::Set> sets;
  for (const SweepReason& reason : sweep.reasons) sets.push_back(reason.set);
  sweep.sets.for_each_outside(sets, take);
}

}  // namespace capstan
