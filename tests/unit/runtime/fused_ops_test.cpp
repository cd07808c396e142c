// A fused op is the two ops that it stands for. In f64 nothing is lost between them, so the bits agree.
#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

using Attributes = std::vector<std::pair<std::string, plan::AttributeValue>>;

Attributes product_of(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  return {{"k", k}, {"m", m}, {"n", n}, {"transpose_a", ta}, {"transpose_b", tb}};
}

Attributes with(Attributes attributes, const char* name, plan::AttributeValue value) {
  attributes.emplace_back(name, std::move(value));
  return attributes;
}

TEST(FusedOps, AreTheirTwoOps) {
  for (const int shape : {0, 1, 2, 3}) {
    const bool ta = (shape & 1) != 0, tb = (shape & 2) != 0;
    const std::int64_t m = 7, n = 13, k = 9;
    PlanSketch sketch;
    const auto matrix = [&](const char* name, std::int64_t rows, std::int64_t columns) {
      return sketch.buffer(name, DType::f64, {rows, columns});
    };
    const BufferId a = ta ? matrix("a", k, m) : matrix("a", m, k);
    const BufferId b = tb ? matrix("b", n, k) : matrix("b", k, n);
    const BufferId bias = sketch.buffer("bias", DType::f64, {n}, plan::Role::parameter);
    const BufferId other = matrix("other", m, n);
    const BufferId biased = matrix("biased", m, n), plain = matrix("plain", m, n);
    const BufferId sum = matrix("sum", m, n), y = matrix("y", m, n), dx = matrix("dx", m, n);
    const BufferId fused_sum = matrix("fused.sum", m, n), fused_y = matrix("fused.y", m, n);
    const BufferId fused_pre = matrix("fused.pre", m, n), fused_dx = matrix("fused.dx", m, n);
    const Attributes product = product_of(m, n, k, ta, tb);
    const Attributes separate = with(product, "accumulate", false);
    sketch.op(OpKind::gemm, {a, b, bias}, {biased}, with(separate, "epilogue", std::string("bias")));
    sketch.op(OpKind::gemm, {a, b}, {plain}, with(separate, "epilogue", std::string("none")));
    sketch.op(OpKind::add, {biased, other}, {sum});
    sketch.op(OpKind::gelu, {biased}, {y}, {{"tanh", true}});
    sketch.op(OpKind::gelu_backward, {plain, other}, {dx}, {{"tanh", true}});
    sketch.op(OpKind::gemm_add, {a, b, bias, other}, {fused_sum},
              with(product, "epilogue", std::string("bias")));
    sketch.op(OpKind::gemm_gelu, {a, b, bias}, {fused_y, fused_pre}, product);
    sketch.op(OpKind::gemm_gelu_backward, {a, b, other}, {fused_dx}, product);
    OpHarness harness(sketch.finish());
    harness.set(a, some_numbers(m * k, 1));
    harness.set(b, some_numbers(k * n, 2));
    harness.set(bias, some_numbers(n, 3));
    harness.set(other, some_numbers(m * n, 4));
    harness.run_all();
    EXPECT_EQ(harness.get(fused_sum), harness.get(sum)) << shape;
    EXPECT_EQ(harness.get(fused_y), harness.get(y)) << shape;
    EXPECT_EQ(harness.get(fused_pre), harness.get(biased)) << shape;
    EXPECT_EQ(harness.get(fused_dx), harness.get(dx)) << shape;
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
