#include "compiler/constraints/smt.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace capstan {
namespace {

TEST(Smt, FoldsConstantsAndComplements) {
  Smt smt;
  const Term a = smt.variable("a");
  const Term b = smt.variable("b");
  EXPECT_EQ(smt.both(a, kTrue), a);
  EXPECT_EQ(smt.both(a, smt.negate(a)), kFalse);
  EXPECT_EQ(smt.either(a, smt.negate(a)), kTrue);
  EXPECT_EQ(smt.negate(smt.negate(a)), a);
  EXPECT_EQ(smt.both(a, b), smt.both(b, a));
  EXPECT_EQ(smt.choose(kTrue, a, b), a);
}

TEST(Smt, GivesModelsAndCores) {
  Smt smt;
  const Term a = smt.variable("a");
  const Term b = smt.variable("b");
  const Term c = smt.variable("c");
  smt.require(smt.either(smt.negate(a), smt.negate(b)));
  ASSERT_EQ(smt.check({a, c}), Answer::sat);
  EXPECT_TRUE(smt.value(a));
  EXPECT_FALSE(smt.value(b));
  std::vector<Term> core;
  ASSERT_EQ(smt.minimal_core({c, a, b}, core), Answer::unsat);
  EXPECT_EQ(core, (std::vector<Term>{a, b}));
}

TEST(Smt, MinimalCorePrefersTheFront) {
  Smt smt;
  const Term a = smt.variable("a");
  const Term b = smt.variable("b");
  const Term c = smt.variable("c");
  smt.require(smt.negate(smt.both(a, b)));
  smt.require(smt.negate(smt.both(a, c)));
  std::vector<Term> core;
  ASSERT_EQ(smt.minimal_core({a, b, c}, core), Answer::unsat);
  EXPECT_EQ(core, (std::vector<Term>{a, b}));
  ASSERT_EQ(smt.minimal_core({c, b, a}, core), Answer::unsat);
  EXPECT_EQ(core, (std::vector<Term>{c, a}));
}

TEST(Smt, PushAndPopRestore) {
  Smt smt;
  const Term a = smt.variable("a");
  smt.push();
  smt.require(smt.negate(a));
  EXPECT_EQ(smt.check({a}), Answer::unsat);
  smt.pop();
  EXPECT_EQ(smt.check({a}), Answer::sat);
}

TEST(Smt, MinimizesWeights) {
  Smt smt;
  const Term a = smt.variable("a");
  const Term b = smt.variable("b");
  const Term c = smt.variable("c");
  smt.require(smt.any({smt.negate(a), smt.negate(b)}));
  smt.require(smt.any({smt.negate(a), smt.negate(c)}));
  std::uint64_t cost = 0;
  ASSERT_EQ(smt.minimize({{a, 3}, {b, 2}, {c, 2}}, {}, cost), Answer::sat);
  EXPECT_EQ(cost, 3u);  // one change of 3 beats two of 2
  EXPECT_FALSE(smt.value(a));
  ASSERT_EQ(smt.minimize({{a, 5}, {b, 2}, {c, 2}}, {}, cost), Answer::sat);
  EXPECT_EQ(cost, 4u);
}

TEST(Smt, ExactlyOneForFewAndMany) {
  for (const std::size_t count : {2u, 6u, 7u, 40u}) {
    Smt smt;
    std::vector<Term> terms;
    for (std::size_t i = 0; i < count; ++i) terms.push_back(smt.variable("t" + std::to_string(i)));
    smt.require_exactly_one(terms);
    for (std::size_t i = 0; i < count; ++i) {
      ASSERT_EQ(smt.check({terms[i]}), Answer::sat);
      std::size_t chosen = 0;
      for (const Term term : terms) chosen += smt.value(term);
      EXPECT_EQ(chosen, 1u);
      if (i > 0) {
        EXPECT_EQ(smt.check({terms[i - 1], terms[i]}), Answer::unsat);
        EXPECT_EQ(smt.check({terms[0], terms[i]}), Answer::unsat);
      }
    }
    std::vector<Term> none;
    for (const Term term : terms) none.push_back(smt.negate(term));
    EXPECT_EQ(smt.check(none), Answer::unsat);
  }
}

// Every element of a minimal core is needed: without it the rest is satisfiable.
TEST(Smt, CoresOfRandomProblemsAreMinimal) {
  std::mt19937 random(7);
  for (int round = 0; round < 60; ++round) {
    Smt smt;
    std::vector<Term> variables;
    for (int i = 0; i < 12; ++i) variables.push_back(smt.variable("v" + std::to_string(i)));
    const auto literal = [&]() {
      const Term term = variables[random() % variables.size()];
      return random() % 3 == 0 ? term : smt.negate(term);
    };
    for (int i = 0; i < 14; ++i) smt.require(smt.any({literal(), literal(), literal()}));
    std::vector<Term> core;
    const Answer answer = smt.minimal_core(variables, core);
    ASSERT_NE(answer, Answer::undecided);
    if (answer == Answer::sat) continue;
    EXPECT_EQ(smt.check(core), Answer::unsat);
    for (std::size_t i = 0; i < core.size(); ++i) {
      std::vector<Term> rest = core;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(smt.check(rest), Answer::sat);
    }
  }
}

TEST(Smt, WritesTheQuestion) {
  Smt smt;
  const Term a = smt.variable("model.x = true");
  smt.require(smt.negate(a));
  const std::string text = smt.smt2({a});
  EXPECT_NE(text.find("|model.x = true|"), std::string::npos);
  EXPECT_NE(text.find(":named a0"), std::string::npos);
  EXPECT_NE(text.find("(check-sat)"), std::string::npos);
}

}  // namespace
}  // namespace capstan
