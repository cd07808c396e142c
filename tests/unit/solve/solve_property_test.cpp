// What the solver claims, checked against the evaluator on random configs of real stacks.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/facts/derive.h"
#include "compiler/solve/complete.h"
#include "compiler/solve/conflict.h"
#include "compiler/solve/conflict_memo.h"
#include "compiler/solve/core.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/repair.h"
#include "compiler/solve/sweep.h"
#include "tests/support/random_config.h"
#include "tests/support/stack_names.h"

namespace capstan {
namespace {

class SolveProperty : public testing::TestWithParam<const char*> {
 protected:
  SolveProperty()
      : stack_(*builtin_schema().find_stack(GetParam())),
        schema_(builtin_schema(), stack_),
        book_(schema_, select(builtin_rules(), stack_)) {}
  const Stack& stack_;
  SchemaView schema_;
  RuleBook book_;
};

// What configs of one stack share changes no fact, and a variant is judged as if it were a config of its own.
TEST_P(SolveProperty, SharingChangesNothing) {
  RandomConfigs random(book_, 4);
  const StackFacts shared(schema_, book_.rules.set->names);
  std::size_t differing = 0;
  for (int round = 0; round < 40; ++round) {
    Config config = random.next();
    if (round % 3 == 0) config.open.push_back(config.settings.begin()->first);
    if (round % 4 == 0) config.broken.push_back(config.settings.rbegin()->first);
    const Subject subject(config, book_);
    const Facts facts = shared.of(config);
    ASSERT_EQ(facts.values.size(), subject.facts.values.size());
    for (FactId fact = 0; fact < facts.values.size(); ++fact) {
      const Fact& a = facts.values[fact];
      const Fact& b = subject.facts.values[fact];
      EXPECT_TRUE(a.state == b.state && a.set == b.set && a.is_version == b.is_version &&
                  a.value == b.value && a.version == b.version && a.setting == b.setting &&
                  a.is_set == b.is_set)
          << subject.name(fact);
    }
    for (int variant = 0; variant < 25; ++variant) {
      std::vector<Assignment> changes;
      for (unsigned i = random.below(4); i-- > 0;) {
        const FactId key = random.keys()[random.below(random.keys().size())];
        changes.push_back({key, random.below(3) > 0, random.value_for(key)});
      }
      Facts changed = with_changes(subject.facts, changes);
      const std::vector<std::uint32_t> expected = decided_violations(book_.rules, changed);
      ASSERT_EQ(subject.variants().violations(changes), expected);
      std::vector<std::uint32_t> told;
      for (const Violation& violation :
           evaluate(book_.rules, with_changes(subject.facts, changes)).violations) {
        if (!violation.undecided) told.push_back(violation.item);
      }
      ASSERT_EQ(told, expected);
      differing += expected != subject.variants().violations({});
    }
  }
  EXPECT_GT(differing, 100u);
}

// What is remembered for configs with the same facts is what explaining the config itself gives.
TEST_P(SolveProperty, RememberedConflictsAreThoseOfTheConfig) {
  ConflictMemo remembers;
  std::size_t seen = 0;
  for (const unsigned seed : {5u, 5u, 6u}) {  // the first configs come twice
    RandomConfigs random(book_, seed);
    for (int round = 0; round < 12; ++round) {
      const Config config = random.next();
      const Subject subject(config, book_);
      for (const std::uint32_t position : violated_checks(book_, subject.facts)) {
        const Conflict known = remembers.explain(subject, position, {});
        const Conflict fresh = ConflictMemo().explain(subject, position, {});
        ASSERT_EQ(known.position, fresh.position);
        ASSERT_EQ(known.minimal, fresh.minimal);
        ASSERT_EQ(known.participants.size(), fresh.participants.size());
        for (std::size_t i = 0; i < fresh.participants.size(); ++i) {
          EXPECT_EQ(known.participants[i].fact, fresh.participants[i].fact);
          EXPECT_EQ(known.participants[i].elements, fresh.participants[i].elements);
        }
        ++seen;
      }
    }
  }
  EXPECT_GT(seen, 0u);
}

// The participants force the violation; with any one of them free it can be avoided.
TEST_P(SolveProperty, ParticipantsAreMinimal) {
  RandomConfigs random(book_, 5);
  std::size_t seen = 0;
  for (int round = 0; round < 25; ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    const std::vector<std::uint32_t> violated = violated_checks(book_, subject.facts);
    if (violated.empty()) continue;
    Explainer explainer(subject, violated, {});
    for (const std::uint32_t position : violated) {
      const Conflict conflict = explainer.explain(position);
      ASSERT_EQ(conflict.minimal, Answer::unsat) << book_.index.item(position).code;
      Smt smt;
      Encoding encoding(smt, book_.index, subject.facts);
      for (const FactId fact : book_.index.inputs(position)) {
        const std::string& name = subject.name(fact);
        if (is_changeable(subject, fact) || name.starts_with("target.") || name.starts_with("cluster.")) {
          encoding.open(fact, explain_domain(subject, fact));
        }
      }
      smt.require(smt.negate(encoding.violated(position)));
      std::vector<Term> all;
      for (const Participant& participant : conflict.participants)
        all.push_back(encoding.stays(participant.fact));
      EXPECT_EQ(smt.check(all), Answer::unsat) << book_.index.item(position).code;
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<Term> rest = all;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_EQ(smt.check(rest), Answer::sat)
            << book_.index.item(position).code << " " << subject.name(conflict.participants[i].fact);
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 10u);
}

TEST_P(SolveProperty, RepairsClearTheirTargetsAndAddNothing) {
  RandomConfigs random(book_, 6);
  std::size_t found = 0;
  for (int round = 0; round < 40; ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    const std::vector<std::uint32_t> before = violated_checks(book_, subject.facts);
    if (before.empty()) continue;
    RepairRequest request;
    request.targets = {before[0]};
    request.limit = 3;
    for (const Repair& repair : find_repairs(subject, request).found) {
      ++found;
      const std::vector<std::uint32_t> after =
          violated_checks(book_, with_changes(subject.facts, repair.changes));
      EXPECT_FALSE(std::binary_search(after.begin(), after.end(), before[0]));
      EXPECT_TRUE(std::includes(before.begin(), before.end(), after.begin(), after.end()));
      for (const Assignment& change : repair.changes)
        EXPECT_NE(effect_of(subject, change.fact), KeyEffect::model);
    }
  }
  EXPECT_GT(found, 4u);
}

TEST_P(SolveProperty, SweepAgreesWithEachPoint) {
  RandomConfigs random(book_, 7);
  for (int round = 0; round < 4; ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    std::vector<SweepAxis> axes;
    std::uint64_t points = 1;
    std::set<FactId> used;
    while (axes.size() < 4) {
      const FactId key = random.keys()[random.below(random.keys().size())];
      if (!used.insert(key).second) continue;
      SweepAxis axis{key, {}};
      for (int i = 0; i < 8; ++i) {
        Value value = random.value_for(key);
        if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
          axis.values.push_back(std::move(value));
      }
      points *= axis.values.size();
      axes.push_back(std::move(axis));
    }
    ASSERT_LE(points, 10'000u);
    const Sweep result = sweep(subject, axes, {}, {});
    ASSERT_EQ(result.points, points);
    ASSERT_EQ(result.answer, Answer::sat);
    std::set<std::vector<std::uint32_t>> legal;
    for_each_legal(result,
                   [&](const std::vector<std::uint32_t>& point) { return legal.insert(point).second; });
    EXPECT_EQ(legal.size(), result.legal);
    std::uint64_t sum = result.legal;
    for (const SweepReason& reason : result.reasons) sum += reason.first;
    EXPECT_EQ(sum, points);
    std::vector<std::uint32_t> point(axes.size(), 0);
    for (std::uint64_t number = 0; number < points; ++number) {
      std::uint64_t rest = number;
      std::vector<Assignment> changes;
      for (std::size_t axis = axes.size(); axis-- > 0;) {
        point[axis] = static_cast<std::uint32_t>(rest % axes[axis].values.size());
        rest /= axes[axis].values.size();
        changes.push_back({axes[axis].key, true, axes[axis].values[point[axis]]});
      }
      bool excluded = false;
      for (const std::uint32_t position : violated_checks(book_, with_changes(subject.facts, changes))) {
        excluded = excluded || forbids(book_.index.item(position));
      }
      ASSERT_EQ(legal.contains(point), !excluded);
    }
  }
}

TEST_P(SolveProperty, CompletionsSatisfyAllRulesOrHaveAConflict) {
  RandomConfigs random(book_, 8);
  std::size_t completed = 0, impossible = 0;
  for (int round = 0; round < 40 && (round < 6 || completed == 0 || impossible == 0); ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    CompleteRequest request;
    for (int i = 0; i < 3; ++i) request.open.push_back(random.keys()[random.below(random.keys().size())]);
    std::sort(request.open.begin(), request.open.end());
    request.open.erase(std::unique(request.open.begin(), request.open.end()), request.open.end());
    const Completion completion = complete(subject, request);
    ASSERT_NE(completion.answer, Answer::undecided);
    if (completion.answer == Answer::sat) {
      ++completed;
      for (const std::uint32_t position :
           violated_checks(book_, with_changes(subject.facts, completion.values))) {
        EXPECT_FALSE(forbids(book_.index.item(position))) << book_.index.item(position).code;
      }
    } else {
      ++impossible;
      ASSERT_FALSE(completion.conflicts.conflicts.empty());
      for (const MinimalConflict& conflict : completion.conflicts.conflicts)
        EXPECT_FALSE(conflict.rules.empty());
    }
  }
  EXPECT_GT(completed, 0u);
  EXPECT_GT(impossible, 0u);
}

// All keys and all rules of a minimal conflict together are impossible; with any one of either left out they
// are not.
TEST_P(SolveProperty, ConflictsAreMinimal) {
  RandomConfigs random(book_, 9);
  std::size_t seen = 0;
  for (int round = 0; round < 20; ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    std::vector<FactId> open{random.keys()[random.below(random.keys().size())]};
    for (const MinimalConflict& conflict : find_conflicts(subject, open, 4, {}).conflicts) {
      Smt smt;
      Encoding encoding(smt, book_.index, subject.facts);
      for (const std::uint32_t rule : conflict.rules) {
        for (const FactId fact : book_.index.inputs(rule)) {
          const std::string& name = subject.name(fact);
          if (encoding.is_open(fact)) continue;
          if (fact == open[0]) {
            Domain domain = *repair_domain(subject, fact);
            if (domain.choices.size() > 1 && domain.choices[0].unknown)
              domain.choices.erase(domain.choices.begin());
            encoding.open(fact, std::move(domain));
          } else if (is_changeable(subject, fact) || name.starts_with("target.") ||
                     name.starts_with("cluster.")) {
            encoding.open(fact, explain_domain(subject, fact));
          }
        }
      }
      std::vector<Term> parts;
      for (const FactId key : conflict.keys) parts.push_back(encoding.stays(key));
      for (const std::uint32_t rule : conflict.rules) parts.push_back(smt.negate(encoding.violated(rule)));
      EXPECT_EQ(smt.check(parts), Answer::unsat);
      for (std::size_t i = 0; i < parts.size(); ++i) {
        std::vector<Term> rest = parts;
        rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_EQ(smt.check(rest), Answer::sat) << i;
      }
      ++seen;
    }
  }
  EXPECT_GT(seen, 10u);
}

INSTANTIATE_TEST_SUITE_P(Stacks, SolveProperty, testing::Values("bridge-0.4", "bridge-0.6", "core-0.18"),
                         [](const auto& instance) { return test::stack_test_name(instance); });

}  // namespace
}  // namespace capstan
