#include <gtest/gtest.h>

#include <random>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

TEST(PassesProperty, RandomModelsGiveVerifiedPlans) {
  std::mt19937_64 random(20260501);
  for (int round = 0; round < 200; ++round) {
    const ModelSpec spec = random_spec(random);
    Plan plan = lower(spec);
    const PassResult result = run_passes(plan, spec);
    ASSERT_EQ(result.fault, "") << "round " << round;
    ASSERT_TRUE(result.refusals.empty()) << result.refusals.front().message;
    ASSERT_EQ(write_json(plan), [&] {
      Plan again = lower(spec);
      run_passes(again, spec);
      return write_json(again);
    }());
  }
}

}  // namespace
}  // namespace capstan::plan
