#include "compiler/constraints/smt.h"

#include "compiler/constraints/propositional_search.h"

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
  std::size_t sat = 0, unsat = 0;
  for (int round = 0; round < 60; ++round) {
    Smt smt;
    std::vector<Term> variables;
    for (int i = 0; i < 12; ++i) variables.push_back(smt.variable("v" + std::to_string(i)));
    const auto literal = [&]() {
      const Term term = variables[random() % variables.size()];
      return random() % 3 == 0 ? term : smt.negate(term);
    };
    for (int i = round % 15; i > 0; --i) smt.require(smt.any({literal(), literal(), literal()}));
    std::vector<Term> core;
    const Answer answer = smt.minimal_core(variables, core);
    ASSERT_NE(answer, Answer::undecided);
    (answer == Answer::sat ? sat : unsat) += 1;
    if (answer == Answer::sat) continue;
    EXPECT_EQ(smt.check(core), Answer::unsat);
    for (std::size_t i = 0; i < core.size(); ++i) {
      std::vector<Term> rest = core;
      rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_EQ(smt.check(rest), Answer::sat);
    }
  }
  EXPECT_GT(sat, 5u);
  EXPECT_GT(unsat, 5u);
}

/// A random question over shared subterms, the same for equal seeds.
struct RandomQuestion {
  RandomQuestion(Smt& smt, unsigned seed) : random(seed) {
    for (int i = 0; i < 14; ++i) pool.push_back(smt.variable("v" + std::to_string(i)));
    for (int i = 0; i < 40; ++i) {
      const Term a = take(smt);
      const Term b = take(smt);
      const Term c = take(smt);
      pool.push_back(random() % 3 == 0   ? smt.all({a, b, c})
                     : random() % 2 == 0 ? smt.any({a, b, c})
                                         : smt.same(a, b));
    }
    for (int i = 0; i < 30; ++i) smt.require(smt.any({take(smt), take(smt), take(smt)}));
    smt.push();
    for (int i = 0; i < 6; ++i) smt.require(smt.either(take(smt), take(smt)));
    for (int i = 0; i < 6; ++i) assumptions.push_back(take(smt));
  }
  Term take(Smt& smt) {
    const Term term = pool[random() % pool.size()];
    return random() % 2 == 0 ? term : smt.negate(term);
  }
  std::mt19937 random;
  std::vector<Term> pool, assumptions;
};

// The search of our own and Z3 are two answers to one question; both are held together here. A model must
// satisfy what was assumed, a core must stay unsat.
TEST(Smt, SearchAgreesWithZ3) {
  SmtOptions by_z3;
  by_z3.z3_only = true;
  by_z3.context = make_solver_context();
  std::size_t sat = 0, unsat = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    Smt own;
    Smt other(by_z3);
    RandomQuestion question(own, seed);
    const RandomQuestion same(other, seed);
    for (int step = 0; step < 3; ++step) {
      const Answer answer = own.check(question.assumptions);
      ASSERT_EQ(answer, other.check(question.assumptions)) << seed << " " << step;
      (answer == Answer::sat ? sat : unsat) += 1;
      if (answer == Answer::sat) {
        for (const Term term : question.assumptions) EXPECT_TRUE(own.value(term)) << seed;
      } else {
        const std::vector<Term> core = own.core();
        EXPECT_EQ(other.check(core), Answer::unsat) << seed;
      }
      // Then without the inner level, then with further terms: what was learnt must not outlive its level.
      if (step == 0) {
        own.pop();
        other.pop();
      } else {
        question.assumptions.pop_back();
      }
    }
  }
  EXPECT_GT(sat, 100u);
  EXPECT_GT(unsat, 100u);
}

// Both find the same least cost, and the model that is given has that cost.
TEST(Smt, LeastCostAgreesWithZ3) {
  SmtOptions by_z3;
  by_z3.z3_only = true;
  by_z3.context = make_solver_context();
  std::size_t positive = 0;
  for (unsigned seed = 1000; seed < 1150; ++seed) {
    Smt own;
    Smt other(by_z3);
    RandomQuestion question(own, seed);
    RandomQuestion same(other, seed);
    std::vector<SoftTerm> soft, same_soft;
    for (int i = 0; i < 15; ++i) {
      const auto weight = static_cast<std::uint32_t>(1 + question.random() % 9);
      soft.push_back({question.take(own), weight});
      same.random();
      same_soft.push_back({same.take(other), weight});
    }
    const std::vector<Term> assumed(question.assumptions.begin(), question.assumptions.begin() + seed % 3);
    std::uint64_t cost = 0, same_cost = 0;
    const Answer answer = own.minimize(soft, assumed, cost);
    ASSERT_EQ(answer, other.minimize(same_soft, assumed, same_cost)) << seed;
    if (answer != Answer::sat) continue;
    EXPECT_EQ(cost, same_cost) << seed;
    for (const Term term : assumed) EXPECT_TRUE(own.value(term));
    positive += cost > 0;
  }
  EXPECT_GT(positive, 30u);
}

/// One pigeon more than holes: no placement, and the proof grows fast with their number.
void require_pigeons(Smt& smt, std::size_t holes) {
  std::vector<std::vector<Term>> in(holes + 1);
  for (std::size_t pigeon = 0; pigeon <= holes; ++pigeon) {
    for (std::size_t hole = 0; hole < holes; ++hole)
      in[pigeon].push_back(smt.variable(std::to_string(pigeon) + " in " + std::to_string(hole)));
    smt.require(smt.any(in[pigeon]));
  }
  for (std::size_t hole = 0; hole < holes; ++hole) {
    for (std::size_t a = 0; a <= holes; ++a) {
      for (std::size_t b = a + 1; b <= holes; ++b)
        smt.require(smt.negate(smt.both(in[a][hole], in[b][hole])));
    }
  }
}

// What exceeds the limit of the search is answered by Z3 within its own, and beyond both the answer is that
// it is undecided.
TEST(Smt, HardQuestionsGoToZ3) {
  constexpr std::size_t kHoles = 7;
  constexpr std::uint32_t kMilliseconds = 40;
  PropositionalSearch alone;
  std::vector<std::vector<PropositionalSearch::Literal>> in(kHoles + 1);
  for (auto& places : in) {
    for (std::size_t hole = 0; hole < kHoles; ++hole) places.push_back(2 * alone.new_variable());
    alone.add_clause(places);
  }
  for (std::size_t hole = 0; hole < kHoles; ++hole) {
    for (std::size_t a = 0; a <= kHoles; ++a) {
      for (std::size_t b = a + 1; b <= kHoles; ++b) alone.add_clause({in[a][hole] ^ 1u, in[b][hole] ^ 1u});
    }
  }
  ASSERT_EQ(alone.solve({}, 10 * kMilliseconds), PropositionalSearch::Result::limit);

  SmtOptions options;
  options.timeout_ms = kMilliseconds;
  Smt hard(options);
  require_pigeons(hard, kHoles);
  EXPECT_EQ(hard.check(), Answer::unsat);

  SmtOptions tiny;
  tiny.timeout_ms = 1;
  Smt hopeless(tiny);
  require_pigeons(hopeless, 11);
  EXPECT_EQ(hopeless.check(), Answer::undecided);
  std::uint64_t cost = 0;
  EXPECT_EQ(hopeless.minimize({{hopeless.variable("wish"), 1}}, {}, cost), Answer::undecided);
  EXPECT_EQ(hopeless.check({kFalse}), Answer::unsat);
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
