// The head's op is its five ops, whatever the number of rows at a time.
#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

TEST(LinearCrossEntropy, IsItsFiveOps) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), H = dims.hidden, V = dims.vocab, Vp = dims.padded_vocab;
  for (const std::int64_t chunk : {std::int64_t{1}, std::int64_t{5}, T}) {
    PlanSketch sketch;
    const auto f64 = [&](const char* name, std::vector<std::int64_t> shape) {
      return sketch.buffer(name, DType::f64, std::move(shape));
    };
    const BufferId x = f64("x", {T, H}), weight = f64("weight", {Vp, H});
    const BufferId logits = f64("logits", {T, Vp}), losses = f64("losses", {T}), lse = f64("lse", {T}),
                   dlogits = f64("dlogits", {T, Vp}), dx = f64("dx", {T, H}),
                   dweight = f64("dweight", {Vp, H});
    const BufferId fused_losses = f64("fused.losses", {T}), fused_dx = f64("fused.dx", {T, H}),
                   fused_dweight = f64("fused.dweight", {Vp, H});
    const BufferId rows = sketch.buffer("rows", DType::f64, {chunk, Vp}, plan::Role::workspace);
    const auto product = [](std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb,
                            bool accumulate) {
      return std::vector<std::pair<std::string, plan::AttributeValue>>{{"accumulate", accumulate},
                                                                       {"epilogue", std::string("none")},
                                                                       {"k", k},
                                                                       {"m", m},
                                                                       {"n", n},
                                                                       {"transpose_a", ta},
                                                                       {"transpose_b", tb}};
    };
    sketch.op(OpKind::gemm, {x, weight}, {logits}, product(T, Vp, H, false, true, false));
    sketch.op(OpKind::cross_entropy, {logits, sketch.targets}, {losses, lse}, {{"vocab", V}});
    sketch.op(OpKind::cross_entropy_backward, {logits, sketch.targets, lse}, {dlogits},
              {{"scale", 0.25}, {"vocab", V}});
    sketch.op(OpKind::gemm, {dlogits, x, dweight}, {dweight}, product(Vp, H, T, true, false, true));
    sketch.op(OpKind::gemm, {dlogits, weight}, {dx}, product(T, H, Vp, false, false, false));
    sketch.op(OpKind::linear_cross_entropy, {x, weight, sketch.targets, fused_dweight},
              {fused_losses, fused_dx, fused_dweight, rows},
              {{"chunk_rows", chunk}, {"scale", 0.25}, {"vocab", V}});
    OpHarness harness(sketch.finish());
    harness.set(x, some_numbers(T * H, 1));
    harness.set(weight, some_numbers(Vp * H, 2));
    harness.set(dweight, some_numbers(Vp * H, 3));
    harness.set(fused_dweight, some_numbers(Vp * H, 3));
    Numbers targets;
    for (std::int64_t t = 0; t < T; ++t) targets.push_back(static_cast<double>(t * 5 % V));
    harness.set(sketch.targets, targets);
    harness.run_all();
    EXPECT_EQ(harness.get(fused_losses), harness.get(losses));
    EXPECT_EQ(harness.get(fused_dx), harness.get(dx));
    // Chunks are added one after the other: the same sums in another order.
    expect_near(harness.get(fused_dweight), harness.get(dweight), 1e-12, "dweight");
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
