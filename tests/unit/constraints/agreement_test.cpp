// The encoding and the evaluator are two readings of one rule language; here they are held together on random
// configs of every stack. CAPSTAN_AGREEMENT_CONFIGS raises the number per stack (docs/rule-language.md is the
// reference for both).
#include <gtest/gtest.h>

#include <cstdlib>

#include "compiler/constraints/encode.h"
#include "compiler/facts/derive.h"
#include "compiler/ruleset/evaluate.h"
#include "tests/support/random_config.h"

namespace capstan {
namespace {

std::size_t configs_per_stack() {
  const char* wanted = std::getenv("CAPSTAN_AGREEMENT_CONFIGS");
  return wanted == nullptr ? 25 : static_cast<std::size_t>(std::strtoul(wanted, nullptr, 10));
}

std::string describe(const Config& config) {
  std::string out;
  for (const auto& [path, setting] : config.settings) out += path + " = " + to_text(setting.value) + "\n";
  return out;
}

class Agreement : public testing::TestWithParam<std::string> {};

TEST_P(Agreement, OnClosedConfigs) {
  const Stack* stack = builtin_schema().find_stack(GetParam());
  const SchemaView schema(builtin_schema(), *stack);
  const RuleBook book(schema, select(builtin_rules(), *stack));
  RandomConfigs random(book, 4711);
  ASSERT_FALSE(random.keys().empty());
  std::size_t violations = 0;
  for (std::size_t round = 0; round < configs_per_stack(); ++round) {
    const Config config = random.next();
    const Facts facts = derive_facts(config, schema, book.rules.set->names);
    const Evaluation evaluation = evaluate(book.rules, facts);
    std::vector<int> expected(book.index.size(), 0);  // 0 holds, 1 violated, 2 undecided
    for (const Violation& violation : evaluation.violations) {
      const auto position = book.index.position_of(violation.item);
      ASSERT_TRUE(position);
      expected[*position] = violation.undecided ? 2 : 1;
    }
    Smt smt;
    Encoding encoding(smt, book.index, facts);
    for (const std::uint32_t position : book.index.checks()) {
      const Term violated = encoding.violated(position);
      const Term undecided = encoding.undecided(position);
      violations += expected[position] == 1;
      ASSERT_EQ(violated == kTrue, expected[position] == 1) << book.index.item(position).code << "\n"
                                                            << describe(config);
      ASSERT_EQ(violated == kFalse, expected[position] != 1) << book.index.item(position).code << "\n"
                                                             << describe(config);
      ASSERT_EQ(undecided == kTrue, expected[position] == 2) << book.index.item(position).code << "\n"
                                                             << describe(config);
    }
    ASSERT_FALSE(encoding.too_wide());
    const auto last = static_cast<std::uint32_t>(book.index.size());
    for (FactId fact = 0; fact < facts.values.size(); ++fact) {
      const Fact& now = evaluation.final_facts.values[fact];
      const Scalar known = encoding.decode(encoding.fact_before(fact, last));
      ASSERT_EQ(known.is_unknown(), now.state == Fact::State::unknown) << facts.names->name(fact) << "\n"
                                                                       << describe(config);
      if (known.is_unknown()) continue;
      Scalar other = now.is_version ? Scalar::of_version(now.version) : Scalar::of(now.value);
      other.as_set = now.is_set;
      ASSERT_TRUE(rule_equal(known, other) || (known.value == other.value && known.tag == other.tag))
          << facts.names->name(fact) << ": " << to_text(known.value) << " and " << to_text(other.value)
          << "\n"
          << describe(config);
    }
  }
  EXPECT_GT(violations, configs_per_stack() / 4);  // else the configs say nothing
}

// With keys open, every model of the solver must be judged by the evaluator as the terms say.
TEST_P(Agreement, OnModelsOfOpenKeys) {
  const Stack* stack = builtin_schema().find_stack(GetParam());
  const SchemaView schema(builtin_schema(), *stack);
  const RuleBook book(schema, select(builtin_rules(), *stack));
  RandomConfigs random(book, 99);
  for (std::size_t round = 0; round < configs_per_stack() / 4 + 1; ++round) {
    const Config config = random.next();
    const Subject subject(config, book);
    Smt smt;
    Encoding encoding(smt, book.index, subject.facts);
    std::vector<FactId> open;
    for (int i = 0; i < 4; ++i) {
      const FactId key = random.keys()[random.below(random.keys().size())];
      if (encoding.is_open(key)) continue;
      encoding.open(key, *repair_domain(subject, key));
      open.push_back(key);
    }
    for (int model = 0; model < 6; ++model) {
      std::vector<Term> assumptions;
      for (const FactId key : open) {
        const Domain& domain = encoding.domain(key);
        if (domain.any_subset && random.below(2) == 0) {
          assumptions.push_back(encoding.is_subset(key));
          for (std::size_t token = 0; token < domain.tokens.size(); ++token) {
            const Term member = encoding.member(key, token);
            assumptions.push_back(random.below(3) == 0 ? member : smt.negate(member));
          }
        } else {
          assumptions.push_back(encoding.chosen(key, random.below(domain.choices.size())));
        }
      }
      std::vector<Term> violated;
      for (const FactId key : open) {
        for (const std::uint32_t position : book.index.checks_reading(key))
          violated.push_back(encoding.violated(position));
      }
      ASSERT_EQ(smt.check(assumptions), Answer::sat);
      std::vector<Assignment> changes;
      for (const FactId key : open) {
        const Choice choice = encoding.decode(key);
        if (!choice.unknown) changes.push_back({key, choice.set, choice.value});
      }
      const std::vector<std::uint32_t> expected = violated_checks(book, with_changes(subject.facts, changes));
      ASSERT_EQ(violated_checks(subject, changes), expected) << describe(config);
      for (const FactId key : open) {
        for (const std::uint32_t position : book.index.checks_reading(key)) {
          ASSERT_EQ(smt.value(encoding.violated(position)),
                    std::binary_search(expected.begin(), expected.end(), position))
              << book.index.item(position).code << "\n"
              << describe(config);
        }
      }
    }
  }
}

std::vector<std::string> stack_names() {
  std::vector<std::string> names;
  for (const Stack& stack : builtin_schema().stacks()) names.push_back(stack.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Stacks, Agreement, testing::ValuesIn(stack_names()), [](const auto& instance) {
  std::string name = instance.param;
  for (char& c : name) {
    if ((c < '0' || c > '9') && (c < 'a' || c > 'z')) c = '_';
  }
  return name;
});

}  // namespace
}  // namespace capstan
