// Every backward op against central differences of its forward op, in f64. The loss is a random weighting of
// the outputs, so the weights are the outputs' gradients. Accumulated gradients start from other numbers than
// zero.
#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

struct Differentiated {
  BufferId value;
  BufferId gradient;
  bool accumulated;
};

class OpGradient : public ::testing::Test {
 protected:
  PlanSketch sketch;
  std::vector<std::pair<BufferId, Numbers>> constants;  ///< further inputs: tokens, the counter

  BufferId f64(const char* name, std::vector<std::int64_t> shape) {
    return sketch.buffer(name, DType::f64, std::move(shape));
  }

  /// `forward` ops make `y`; `backward` ops read dy and make the gradients.
  void check(const std::vector<OpId>& forward, const std::vector<OpId>& backward, BufferId y, BufferId dy,
             const std::vector<Differentiated>& inputs) {
    OpHarness run(sketch.finish());
    for (const auto& [id, numbers] : constants) run.set(id, numbers);
    unsigned seed = 1;
    std::vector<Numbers> values, started;
    for (const Differentiated& input : inputs) {
      values.push_back(some_numbers(run.plan().buffers[input.value].elements(), seed++));
      started.push_back(some_numbers(run.plan().buffers[input.value].elements(), 100 + seed));
      run.set(input.value, values.back());
      if (input.accumulated) run.set(input.gradient, started.back());
    }
    const Numbers weights = some_numbers(run.plan().buffers[y].elements(), 50);
    const auto loss = [&] {
      for (const OpId op : forward) run.run(op);
      const Numbers out = run.get(y);
      double sum = 0;
      for (std::size_t i = 0; i < out.size(); ++i) sum += weights[i] * out[i];
      return sum;
    };
    loss();
    run.set(dy, weights);
    for (const OpId op : backward) run.run(op);
    std::vector<Numbers> gradients;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      gradients.push_back(run.get(inputs[i].gradient));
      if (!inputs[i].accumulated) continue;
      for (std::size_t e = 0; e < gradients[i].size(); ++e) gradients[i][e] -= started[i][e];
    }
    constexpr double kStep = 1e-5;  // error of the difference: about step^2 and 1e-16 / step
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      for (std::size_t e = 0; e < values[i].size(); ++e) {
        const auto at = [&](double shift) {
          Numbers moved = values[i];
          moved[e] += shift;
          run.set(inputs[i].value, moved);
          return loss();
        };
        const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
        run.set(inputs[i].value, values[i]);
        ASSERT_NEAR(gradients[i][e], slope, 2e-8 * (1 + std::fabs(slope)))
            << run.plan().buffers[inputs[i].value].name << "[" << e << "]";
      }
    }
  }
};

TEST_F(OpGradient, RmsNorm) {
  for (const bool accumulate : {false, true}) {
    sketch = PlanSketch();
    const auto x = f64("x", {5, 7}), w = f64("w", {7}), y = f64("y", {5, 7}), rstd = f64("rstd", {5});
    const auto dy = f64("dy", {5, 7}), dx = f64("dx", {5, 7}), dw = f64("dw", {7}),
               partial = f64("partial", {7});
    const auto forward = sketch.op(OpKind::rms_norm, {x, w}, {y, rstd}, {{"eps", 1e-3}});
    std::vector<BufferId> in = {dy, x, w, rstd, dw};
    if (accumulate) in.push_back(dx);
    const auto backward =
        sketch.op(OpKind::rms_norm_backward, in, {dx, dw, partial}, {{"accumulate_dx", accumulate}});
    check({forward}, {backward}, y, dy, {{x, dx, accumulate}, {w, dw, true}});
  }
}

TEST_F(OpGradient, LayerNorm) {
  for (const bool accumulate : {false, true}) {
    sketch = PlanSketch();
    const auto x = f64("x", {5, 7}), w = f64("w", {7}), b = f64("b", {7}), y = f64("y", {5, 7}),
               mean = f64("mean", {5}), rstd = f64("rstd", {5});
    const auto dy = f64("dy", {5, 7}), dx = f64("dx", {5, 7}), dw = f64("dw", {7}), db = f64("db", {7}),
               partial = f64("partial", {2, 7});
    const auto forward = sketch.op(OpKind::layer_norm, {x, w, b}, {y, mean, rstd}, {{"eps", 1e-3}});
    std::vector<BufferId> in = {dy, x, w, mean, rstd, dw, db};
    if (accumulate) in.push_back(dx);
    const auto backward =
        sketch.op(OpKind::layer_norm_backward, in, {dx, dw, db, partial}, {{"accumulate_dx", accumulate}});
    check({forward}, {backward}, y, dy, {{x, dx, accumulate}, {w, dw, true}, {b, db, true}});
  }
}

TEST_F(OpGradient, GemmAsTheLinearLayerUsesIt) {
  const std::int64_t T = 5, in = 7, out = 6;
  const auto gemm = [&](BufferId a, BufferId b, BufferId d, std::int64_t m, std::int64_t n, std::int64_t k,
                        bool ta, bool tb, bool accumulate) {
    std::vector<BufferId> inputs = {a, b};
    if (accumulate) inputs.push_back(d);
    return sketch.op(OpKind::gemm, inputs, {d},
                     {{"accumulate", accumulate},
                      {"epilogue", std::string("none")},
                      {"k", k},
                      {"m", m},
                      {"n", n},
                      {"transpose_a", ta},
                      {"transpose_b", tb}});
  };
  const auto x = f64("x", {T, in}), w = f64("w", {out, in}), y = f64("y", {T, out}), dy = f64("dy", {T, out}),
             dx = f64("dx", {T, in}), dw = f64("dw", {out, in});
  const auto forward = gemm(x, w, y, T, out, in, false, true, false);
  const auto to_x = gemm(dy, w, dx, T, in, out, false, false, false);
  const auto to_w = gemm(dy, x, dw, out, in, T, true, false, true);
  check({forward}, {to_x, to_w}, y, dy, {{x, dx, false}, {w, dw, true}});
}

TEST_F(OpGradient, Bias) {
  const std::int64_t m = 5, n = 70, k = 3;
  const auto x = f64("x", {m, k}), w = f64("w", {n, k}), b = f64("b", {n}), y = f64("y", {m, n}),
             dy = f64("dy", {m, n}), db = f64("db", {n}), partial = f64("partial", {n});
  const auto forward = sketch.op(OpKind::gemm, {x, w, b}, {y},
                                 {{"accumulate", false},
                                  {"epilogue", std::string("bias")},
                                  {"k", k},
                                  {"m", m},
                                  {"n", n},
                                  {"transpose_a", false},
                                  {"transpose_b", true}});
  const auto backward = sketch.op(OpKind::bias_backward, {dy, db}, {db, partial});
  check({forward}, {backward}, y, dy, {{b, db, true}});
}

TEST_F(OpGradient, RopeTurnsBack) {
  // The gradient of a rotation is the rotation back, applied in place to the gradient.
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), width = 4 * 4;
  for (const bool interleaved : {false, true}) {
    sketch = PlanSketch();
    const auto x = f64("x", {T, width}), zero = f64("zeros", {T, width}), y = f64("y", {T, width}),
               dy = f64("dy", {T, width});
    const auto attributes = [&](bool inverse) {
      return std::vector<std::pair<std::string, plan::AttributeValue>>{{"base", 100.0},
                                                                       {"head_dim", std::int64_t{4}},
                                                                       {"heads", std::int64_t{2}},
                                                                       {"interleaved", interleaved},
                                                                       {"inverse", inverse},
                                                                       {"kv_heads", std::int64_t{1}},
                                                                       {"rotary_dim", std::int64_t{4}},
                                                                       {"seq_length", dims.seq_length}};
    };
    const auto copy = sketch.op(OpKind::add, {x, zero}, {y});
    const auto turn = sketch.op(OpKind::rope, {y}, {y}, attributes(false));
    const auto back = sketch.op(OpKind::rope, {dy}, {dy}, attributes(true));
    check({copy, turn}, {back}, y, dy, {{x, dy, false}});
  }
}

TEST_F(OpGradient, Attention) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t B = dims.micro_batch, S = dims.seq_length, H = 4, K = 2, d = 3, T = B * S;
  for (const bool causal : {true, false}) {
    for (const double p : {0.0, 0.4}) {
      sketch = PlanSketch();
      const auto qkv = f64("qkv", {T, (H + 2 * K) * d}), o = f64("o", {T, H * d}),
                 lse = f64("lse", {B, H, S});
      const auto d_o = f64("do", {T, H * d}), dqkv = f64("dqkv", {T, (H + 2 * K) * d}),
                 delta = f64("delta", {B, H, S});
      const std::vector<std::pair<std::string, plan::AttributeValue>> attributes = {
          {"batch", B},
          {"causal", causal},
          {"head_dim", d},
          {"heads", H},
          {"kv_heads", K},
          {"p", p},
          {"rng_offset", std::int64_t{3}},
          {"scale", 0.7},
          {"seq_length", S}};
      const auto forward = sketch.op(OpKind::attention, {qkv, sketch.rng_counter}, {o, lse}, attributes);
      const auto backward = sketch.op(OpKind::attention_backward, {d_o, qkv, o, lse, sketch.rng_counter},
                                      {dqkv, delta}, attributes);
      constants = {{sketch.rng_counter, {5}}};
      check({forward}, {backward}, o, d_o, {{qkv, dqkv, false}});
    }
  }
}

TEST_F(OpGradient, Activations) {
  const auto gate_up = f64("gate_up", {3, 10}), h = f64("h", {3, 5}), dh = f64("dh", {3, 5}),
             dgate_up = f64("dgate_up", {3, 10});
  const auto forward = sketch.op(OpKind::swiglu, {gate_up}, {h});
  const auto backward = sketch.op(OpKind::swiglu_backward, {dh, gate_up}, {dgate_up});
  check({forward}, {backward}, h, dh, {{gate_up, dgate_up, false}});
  for (const bool tanh : {false, true}) {
    sketch = PlanSketch();
    const auto x = f64("x", {30}), y = f64("y", {30}), dy = f64("dy", {30}), dx = f64("dx", {30});
    const auto gelu = sketch.op(OpKind::gelu, {x}, {y}, {{"tanh", tanh}});
    const auto back = sketch.op(OpKind::gelu_backward, {dy, x}, {dx}, {{"tanh", tanh}});
    check({gelu}, {back}, y, dy, {{x, dx, false}});
  }
}

TEST_F(OpGradient, Dropout) {
  const auto x = f64("x", {40}), r = f64("r", {40}), y = f64("y", {40}), dy = f64("dy", {40}),
             dx = f64("dx", {40});
  const std::vector<std::pair<std::string, plan::AttributeValue>> attributes = {
      {"p", 0.3}, {"rng_offset", std::int64_t{8}}};
  const auto forward = sketch.op(OpKind::dropout_add, {x, r, sketch.rng_counter}, {y}, attributes);
  const auto backward = sketch.op(OpKind::dropout_backward, {dy, sketch.rng_counter}, {dx}, attributes);
  constants = {{r, some_numbers(40, 77)}, {sketch.rng_counter, {2}}};
  check({forward}, {backward}, y, dy, {{x, dx, false}});
}

TEST_F(OpGradient, CrossEntropy) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), Vp = dims.padded_vocab;
  const auto logits = f64("logits", {T, Vp}), losses = f64("losses", {T}), lse = f64("lse", {T}),
             dlogits = f64("dlogits", {T, Vp});
  const auto forward =
      sketch.op(OpKind::cross_entropy, {logits, sketch.targets}, {losses, lse}, {{"vocab", dims.vocab}});
  sketch.op(OpKind::cross_entropy_backward, {logits, sketch.targets, lse}, {dlogits},
            {{"scale", 1.0}, {"vocab", dims.vocab}});
  Numbers targets;
  for (std::int64_t t = 0; t < T; ++t) targets.push_back(static_cast<double>(t * 3 % dims.vocab));
  // The op knows one weight for all tokens, so the loss is their plain sum.
  OpHarness run(sketch.finish());
  run.set(sketch.targets, targets);
  const Numbers x = some_numbers(T * Vp, 1);
  const auto loss = [&](const Numbers& at) {
    run.set(logits, at);
    run.run(forward);
    double sum = 0;
    for (const double one : run.get(losses)) sum += one;
    return sum;
  };
  loss(x);
  run.run(1);
  const Numbers gradient = run.get(dlogits);
  for (std::size_t e = 0; e < x.size(); ++e) {
    Numbers up = x, down = x;
    up[e] += 1e-5;
    down[e] -= 1e-5;
    ASSERT_NEAR(gradient[e], (loss(up) - loss(down)) / 2e-5, 2e-8) << e;
  }
}

TEST_F(OpGradient, CrossEntropyScalesAndMayOverwriteTheLogits) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), Vp = dims.padded_vocab;
  const auto logits = f64("logits", {T, Vp}), losses = f64("losses", {T}), lse = f64("lse", {T}),
             apart = f64("dlogits", {T, Vp});
  sketch.op(OpKind::cross_entropy, {logits, sketch.targets}, {losses, lse}, {{"vocab", dims.vocab}});
  sketch.op(OpKind::cross_entropy_backward, {logits, sketch.targets, lse}, {apart},
            {{"scale", 0.5}, {"vocab", dims.vocab}});
  sketch.op(OpKind::cross_entropy_backward, {logits, sketch.targets, lse}, {logits},
            {{"scale", 0.5}, {"vocab", dims.vocab}});
  OpHarness run(sketch.finish());
  run.set(logits, some_numbers(T * Vp, 1));
  run.run_all();
  const Numbers gradient = run.get(apart);
  EXPECT_EQ(gradient, run.get(logits));
  for (std::int64_t t = 0; t < T; ++t) {
    double sum = 0;
    for (std::int64_t j = 0; j < Vp; ++j) sum += gradient[t * Vp + j];
    EXPECT_NEAR(sum, 0, 1e-12);      // probabilities less one target
    EXPECT_LT(gradient[t * Vp], 0);  // target 0: 0.5 * (p - 1)
    EXPECT_GT(gradient[t * Vp], -0.5);
  }
}

TEST_F(OpGradient, EmbeddingWithPositions) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), H = 5, S = dims.seq_length;
  const auto table = f64("table", {dims.padded_vocab, H}), places = f64("places", {S, H}),
             x = f64("x", {T, H});
  const auto dx = f64("dx", {T, H}), dtable = f64("dtable", {dims.padded_vocab, H}),
             dplaces = f64("dplaces", {S, H});
  const auto forward = sketch.op(OpKind::embedding, {sketch.tokens, table, places}, {x});
  const auto backward =
      sketch.op(OpKind::embedding_backward, {dx, sketch.tokens, dtable, dplaces}, {dtable, dplaces});
  Numbers tokens;
  for (std::int64_t t = 0; t < T; ++t) tokens.push_back(static_cast<double>(t % 4));  // repeated tokens
  constants = {{sketch.tokens, tokens}};
  check({forward}, {backward}, x, dx, {{table, dtable, true}, {places, dplaces, true}});
}

}  // namespace
}  // namespace capstan::runtime::testing
