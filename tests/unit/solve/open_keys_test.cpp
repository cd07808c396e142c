// What legal, why-not and sweep say of configs with open keys, against brute force over all fillings.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/solve/complete.h"
#include "compiler/solve/fill.h"
#include "compiler/solve/legal.h"
#include "compiler/solve/sweep.h"
#include "tests/support/random_config.h"
#include "tests/support/stack_names.h"

namespace capstan {
namespace {

constexpr std::size_t kMostStates = 12;  // of one key

std::vector<Choice> states_of(const Domain& domain) {
  std::vector<Choice> states = domain.choices;
  if (domain.any_subset && domain.tokens.size() <= 3) {
    for (unsigned bits = 0; bits < (1u << domain.tokens.size()); ++bits) {
      Value::List list;
      for (std::size_t i = 0; i < domain.tokens.size(); ++i) {
        if ((bits >> i) & 1u) list.emplace_back(domain.tokens[i]);
      }
      states.push_back({true, false, Value(std::move(list))});
    }
  }
  return states;
}

bool is_small(const Subject& subject, FactId fact) {
  const auto keys = open_keys(subject, {fact});
  return keys.size() == 1 && !keys[0].domain.choices[0].unknown &&
         (!keys[0].domain.any_subset || keys[0].domain.tokens.size() <= 3) &&
         states_of(keys[0].domain).size() <= kMostStates;
}

/// Whether some filling is violated by no rule that reads a key of `about` and forbids.
bool can_be_filled(const Subject& subject, const std::vector<FactId>& open,
                   const std::vector<FactId>& about) {
  std::vector<std::vector<Choice>> states;
  const std::vector<OpenKey> keys = open_keys(subject, open);
  for (const OpenKey& key : keys) states.push_back(states_of(key.domain));
  std::vector<std::size_t> at(keys.size(), 0);
  while (true) {
    std::vector<Assignment> filling;
    for (std::size_t i = 0; i < keys.size(); ++i)
      filling.push_back({keys[i].fact, states[i][at[i]].set, states[i][at[i]].value});
    const std::vector<std::uint32_t> violated = violated_checks(subject, filling);
    if (std::none_of(violated.begin(), violated.end(), [&](std::uint32_t position) {
          return forbids(subject.index().item(position)) && reads_any(subject.index(), position, about);
        }))
      return true;
    std::size_t i = 0;
    while (i < at.size() && ++at[i] == states[i].size()) at[i++] = 0;
    if (i == at.size()) return false;
  }
}

class OpenKeys : public testing::TestWithParam<const char*> {
 protected:
  OpenKeys()
      : schema_(builtin_schema(), *builtin_schema().find_stack(GetParam())),
        book_(schema_, select(builtin_rules(), *builtin_schema().find_stack(GetParam()))) {}

  /// A key and 2 to 4 further ones that rules read together with it or with each other.
  std::vector<FactId> related_keys(RandomConfigs& random, const Subject& subject) {
    std::vector<FactId> keys{random.keys()[random.below(random.keys().size())]};
    const std::size_t wanted = 3 + random.below(3);
    for (int attempt = 0; attempt < 60 && keys.size() < wanted; ++attempt) {
      const auto& checks = book_.index.checks_reading(keys[random.below(keys.size())]);
      if (checks.empty()) continue;
      const auto& inputs = book_.index.inputs(checks[random.below(checks.size())]);
      const FactId fact = inputs[random.below(inputs.size())];
      if (is_changeable(subject, fact) && is_small(subject, fact) &&
          std::find(keys.begin(), keys.end(), fact) == keys.end())
        keys.push_back(fact);
    }
    return keys;
  }

  SchemaView schema_;
  RuleBook book_;
};

TEST_P(OpenKeys, LegalAndWhyNotAgreeWithBruteForce) {
  RandomConfigs random(book_, 31);
  std::size_t asked = 0, only_by_filling = 0, ways = 0;
  for (int round = 0; round < 120; ++round) {
    Config config = random.next();
    const Subject before(config, book_);
    std::vector<FactId> keys = related_keys(random, before);
    if (keys.size() < 3 || !is_small(before, keys[0])) continue;
    const FactId key = keys[0];
    const std::vector<FactId> open(keys.begin() + 1, keys.end());
    if (round % 2 == 0) {  // written as "?"
      for (const FactId fact : open) {
        Setting& setting = config.settings[before.name(fact)];
        setting.path = before.name(fact);
        setting.value = Value("?");
        config.open.push_back(before.name(fact));
      }
    }
    const Subject subject(config, book_);
    for (const LegalValue& value : find_legal_values(subject, key, open, {}).values) {
      const Subject at(config, book_, with_changes(subject.facts, {value.assignment}));
      const bool expected = can_be_filled(at, open, keys);
      ASSERT_EQ(value.opposition.answer, expected ? Answer::sat : Answer::unsat)
          << subject.name(key) << " " << value.what << " round " << round;
      ++asked;
      const WhyNot why = explain_why_not(subject, value.assignment, open, {});
      ASSERT_EQ(why.opposition.answer, expected ? Answer::sat : Answer::unsat);
      if (expected) continue;
      only_by_filling += why.opposition.against.empty();
      if (why.opposition.against.empty()) {
        ASSERT_TRUE(why.opposition.conflict.has_value());
        EXPECT_FALSE(why.opposition.conflict->rules.empty());
      }
      for (const Repair& way : why.ways.found) {
        const Subject repaired(config, book_, with_changes(subject.facts, way.changes));
        // Filled with what was tried for the config before the repair.
        const std::vector<OpenKey> tried = open_keys(at, open);
        std::set<std::uint32_t> rules;
        const Subject judged(config, book_, with_open(repaired.facts, open));
        EXPECT_EQ(fill(judged, tried, keys, rules, {}).answer, Answer::sat) << round;
        for (const Assignment& change : way.changes)
          EXPECT_EQ(std::find(open.begin(), open.end(), change.fact), open.end());
        ++ways;
      }
    }
  }
  EXPECT_GT(asked, 60u);
  EXPECT_GT(only_by_filling, 0u);
  EXPECT_GT(ways, 0u);
}

TEST_P(OpenKeys, SweepAgreesWithCompletingEachPoint) {
  RandomConfigs random(book_, 32);
  std::size_t legal_points = 0, excluded = 0;
  for (int round = 0; round < 60; ++round) {
    const Config config = random.next();
    const Subject subject(config, book_);
    std::vector<FactId> keys = related_keys(random, subject);
    if (keys.size() < 4) continue;
    std::vector<SweepAxis> axes;
    for (std::size_t i = 0; i < 2; ++i) {
      SweepAxis axis{keys[i], {}};
      for (int attempt = 0; attempt < 6; ++attempt) {
        Value value = random.value_for(keys[i]);
        if (std::find(axis.values.begin(), axis.values.end(), value) == axis.values.end())
          axis.values.push_back(std::move(value));
      }
      axes.push_back(std::move(axis));
    }
    const std::vector<FactId> open(keys.begin() + 2, keys.end());
    const Sweep result = sweep(subject, axes, open, {});
    ASSERT_EQ(result.answer, Answer::sat);
    std::set<std::vector<std::uint32_t>> legal;
    for_each_legal(result,
                   [&](const std::vector<std::uint32_t>& point) { return legal.insert(point).second; });
    EXPECT_EQ(legal.size(), result.legal);
    std::uint64_t sum = result.legal;
    for (const SweepReason& reason : result.reasons) sum += reason.first;
    EXPECT_EQ(sum, result.points);
    const std::vector<OpenKey> tried = open_keys(subject, open);
    const bool listed = std::all_of(tried.begin(), tried.end(), [&](const OpenKey& one) {
      return lists_every_value(subject, one.fact, one.domain);
    });
    for (std::uint32_t a = 0; a < axes[0].values.size(); ++a) {
      for (std::uint32_t b = 0; b < axes[1].values.size(); ++b) {
        const Subject at(config, book_,
                         with_changes(subject.facts, {{axes[0].key, true, axes[0].values[a]},
                                                      {axes[1].key, true, axes[1].values[b]}}));
        const Completion completion = complete(at, {open, {}, false, {}});
        ASSERT_NE(completion.answer, Answer::undecided);
        const bool possible = completion.answer == Answer::sat;
        // Of numbers and texts a sweep may try values that complete(), asked for one point, does not.
        if (possible || listed) {
          ASSERT_EQ(legal.contains({a, b}), possible) << "round " << round;
        }
        legal_points += possible;
        excluded += !possible;
      }
    }
  }
  EXPECT_GT(legal_points, 5u);
  EXPECT_GT(excluded, 20u);
}

INSTANTIATE_TEST_SUITE_P(Stacks, OpenKeys, testing::Values("bridge-0.4", "bridge-0.6", "core-0.18"),
                         [](const auto& instance) { return test::stack_test_name(instance); });

}  // namespace
}  // namespace capstan
