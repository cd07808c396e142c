#include <map>
#include <random>

#include <gtest/gtest.h>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

std::map<OpKind, int> kinds_of(const ModelSpec& spec) {
  Plan plan = lower(spec);
  const PassResult result = run_passes(plan, spec);
  EXPECT_TRUE(result.ok()) << result.fault;
  std::map<OpKind, int> kinds;
  for (const Op& op : plan.ops) ++kinds[op.kind];
  return kinds;
}

ModelSpec tanh_gpt() {
  ModelSpec spec = small_gpt();
  spec.activation = Activation::gelu_tanh;
  spec.backend = "cuda";
  return spec;
}

TEST(PassFuse, JoinsResidualsAndGelu) {
  std::map<OpKind, int> kinds = kinds_of(tanh_gpt());
  const int layers = static_cast<int>(tanh_gpt().dims.layers);
  EXPECT_EQ(kinds[OpKind::gemm_add], 2 * layers);
  EXPECT_EQ(kinds[OpKind::gemm_gelu], layers);
  EXPECT_EQ(kinds[OpKind::gemm_gelu_backward], layers);
  EXPECT_EQ(kinds[OpKind::add], 0);
  EXPECT_EQ(kinds[OpKind::gelu], 0);
  EXPECT_EQ(kinds[OpKind::gelu_backward], 0);
}

TEST(PassFuse, LeavesOtherBackendsAlone) {
  ModelSpec spec = tanh_gpt();
  spec.backend = "auto";
  std::map<OpKind, int> kinds = kinds_of(spec);
  EXPECT_EQ(kinds[OpKind::gemm_add] + kinds[OpKind::gemm_gelu] + kinds[OpKind::gemm_gelu_backward], 0);
}

TEST(PassFuse, LeavesWhatNoEpilogueComputes) {
  ModelSpec exact = tanh_gpt();
  exact.activation = Activation::gelu;  // erf
  EXPECT_EQ(kinds_of(exact)[OpKind::gemm_gelu], 0);
  ModelSpec wide = tanh_gpt();
  wide.param_dtype = DType::f32;
  wide.has_masters = false;
  EXPECT_EQ(kinds_of(wide)[OpKind::gemm_gelu], 0);
  EXPECT_GT(kinds_of(wide)[OpKind::gemm_add], 0);
  ModelSpec odd = tanh_gpt();
  odd.dims.ffn_hidden = 28;  // rows of 56 bytes
  EXPECT_EQ(kinds_of(odd)[OpKind::gemm_gelu], 0);
  ModelSpec dropped = tanh_gpt();
  dropped.hidden_dropout = 0.1;  // the residual is added by dropout_add
  EXPECT_EQ(kinds_of(dropped)[OpKind::gemm_add], 0);
}

// The verifier runs after every pass.
TEST(PassFuse, KeepsAnyPlanLegal) {
  std::mt19937_64 random(20);
  for (int i = 0; i < 200; ++i) {
    ModelSpec spec = random_spec(random);
    spec.backend = "cuda";
    Plan plan = lower(spec);
    const PassResult result = run_passes(plan, spec);
    ASSERT_TRUE(result.fault.empty()) << i << ": " << result.fault;
  }
}

}  // namespace
}  // namespace capstan::plan
