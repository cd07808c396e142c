// Every op against a plain formulation in f64, in every storage type. Inputs are rounded to the storage
// first, so what is left is the op's own arithmetic and one rounding of the result.
#include "runtime/ops/host_ops.h"

#include <limits>

#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

using plan::AttributeValue;
using Attributes = std::vector<std::pair<std::string, AttributeValue>>;

class OpForward : public ::testing::TestWithParam<DType> {
 protected:
  DType type() const { return GetParam(); }
  /// Of a result stored in this type after a sum of moderate length.
  double tolerance() const { return type() == DType::f64 ? 1e-12 : type() == DType::f32 ? 3e-6 : 1.0 / 256; }
  Numbers numbers(std::int64_t count, unsigned seed) const {
    return rounded(some_numbers(count, seed), type());
  }
};

TEST_P(OpForward, GemmInAllFourLayouts) {
  // Beyond one block in every dimension, and not a multiple of a tile.
  const std::int64_t m = 101, n = 137, k = 261;
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const bool accumulate : {false, true}) {
        for (const bool bias : {false, true}) {
          PlanSketch sketch;
          const auto a = sketch.buffer("a", type(), ta ? std::vector{k, m} : std::vector{m, k});
          const auto b = sketch.buffer("b", type(), tb ? std::vector{n, k} : std::vector{k, n});
          const auto c = sketch.buffer("bias", type(), {n});
          const auto d = sketch.buffer("d", type(), {m, n});
          std::vector<BufferId> inputs = {a, b};
          if (bias) inputs.push_back(c);
          if (accumulate) inputs.push_back(d);
          sketch.op(OpKind::gemm, inputs, {d},
                    {{"accumulate", accumulate},
                     {"epilogue", std::string(bias ? "bias" : "none")},
                     {"k", k},
                     {"m", m},
                     {"n", n},
                     {"transpose_a", ta},
                     {"transpose_b", tb}});
          OpHarness run(sketch.finish());
          const Numbers av = numbers(m * k, 1), bv = numbers(k * n, 2), cv = numbers(n, 3),
                        dv = numbers(m * n, 4);
          run.set(a, av);
          run.set(b, bv);
          run.set(c, cv);
          run.set(d, dv);
          run.run(0);
          Numbers want(static_cast<std::size_t>(m * n));
          for (std::int64_t i = 0; i < m; ++i) {
            for (std::int64_t j = 0; j < n; ++j) {
              double sum = (bias ? cv[j] : 0.0) + (accumulate ? dv[i * n + j] : 0.0);
              for (std::int64_t p = 0; p < k; ++p)
                sum += (ta ? av[p * m + i] : av[i * k + p]) * (tb ? bv[j * k + p] : bv[p * n + j]);
              want[i * n + j] = sum;
            }
          }
          expect_near(run.get(d), want, tolerance() * 4, "d");
        }
      }
    }
  }
}

TEST_P(OpForward, Norms) {
  const std::int64_t rows = 12, width = 37;
  PlanSketch sketch;
  const auto x = sketch.buffer("x", type(), {rows, width}), w = sketch.buffer("w", type(), {width}),
             b = sketch.buffer("b", type(), {width});
  const auto y = sketch.buffer("y", type(), {rows, width}), z = sketch.buffer("z", type(), {rows, width});
  const auto rms_rstd = sketch.buffer("r0", DType::f32, {rows}),
             mean = sketch.buffer("m", DType::f32, {rows}), rstd = sketch.buffer("r1", DType::f32, {rows});
  const auto rms = sketch.op(OpKind::rms_norm, {x, w}, {y, rms_rstd}, {{"eps", 1e-5}});
  const auto layer = sketch.op(OpKind::layer_norm, {x, w, b}, {z, mean, rstd}, {{"eps", 1e-5}});
  OpHarness run(sketch.finish());
  const Numbers xv = numbers(rows * width, 1), wv = numbers(width, 2), bv = numbers(width, 3);
  run.set(x, xv);
  run.set(w, wv);
  run.set(b, bv);
  run.run(rms);
  run.run(layer);
  Numbers want_y, want_z, want_r0, want_m, want_r1;
  for (std::int64_t i = 0; i < rows; ++i) {
    double squares = 0, sum = 0, spread = 0;
    for (std::int64_t j = 0; j < width; ++j)
      squares += xv[i * width + j] * xv[i * width + j], sum += xv[i * width + j];
    const double average = sum / width;
    for (std::int64_t j = 0; j < width; ++j) spread += std::pow(xv[i * width + j] - average, 2);
    const double r0 = 1 / std::sqrt(squares / width + 1e-5), r1 = 1 / std::sqrt(spread / width + 1e-5);
    want_r0.push_back(r0);
    want_m.push_back(average);
    want_r1.push_back(r1);
    for (std::int64_t j = 0; j < width; ++j) {
      want_y.push_back(xv[i * width + j] * r0 * wv[j]);
      want_z.push_back((xv[i * width + j] - average) * r1 * wv[j] + bv[j]);
    }
  }
  expect_near(run.get(y), want_y, tolerance(), "y");
  expect_near(run.get(z), want_z, tolerance(), "z");
  expect_near(run.get(rms_rstd), want_r0, 1e-6, "rstd");  // statistics are f32 in every plan
  expect_near(run.get(mean), want_m, 1e-6, "mean");
  expect_near(run.get(rstd), want_r1, 1e-6, "rstd");
}

TEST_P(OpForward, RopeInBothPairings) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t heads = 2, kv = 1, d = 8, rotary = 6, S = dims.seq_length, T = dims.tokens(),
                     width = (heads + 2 * kv) * d;
  for (const bool interleaved : {false, true}) {
    PlanSketch sketch;
    const auto qkv = sketch.buffer("qkv", type(), {T, width});
    const auto attributes = [&](bool inverse) {
      return Attributes{
          {"base", 10000.0},    {"head_dim", d},  {"heads", heads},       {"interleaved", interleaved},
          {"inverse", inverse}, {"kv_heads", kv}, {"rotary_dim", rotary}, {"seq_length", S}};
    };
    const auto forward = sketch.op(OpKind::rope, {qkv}, {qkv}, attributes(false));
    const auto back = sketch.op(OpKind::rope, {qkv}, {qkv}, attributes(true));
    OpHarness run(sketch.finish());
    const Numbers before = numbers(T * width, 1);
    run.set(qkv, before);
    run.run(forward);
    Numbers want = before;
    for (std::int64_t t = 0; t < T; ++t) {
      for (std::int64_t h = 0; h < heads + kv; ++h) {
        for (std::int64_t i = 0; i < rotary / 2; ++i) {
          const double angle =
              static_cast<double>(t % S) * std::pow(10000.0, -2.0 * static_cast<double>(i) / rotary);
          const std::int64_t at = t * width + h * d;
          const std::int64_t p = at + (interleaved ? 2 * i : i),
                             q = at + (interleaved ? 2 * i + 1 : i + rotary / 2);
          want[p] = before[p] * std::cos(angle) - before[q] * std::sin(angle);
          want[q] = before[p] * std::sin(angle) + before[q] * std::cos(angle);
        }
      }
    }
    expect_near(run.get(qkv), want, tolerance(), "turned");
    run.run(back);
    expect_near(run.get(qkv), before, 2 * tolerance(), "turned back");
  }
}

/// Keep factors of [B, heads, S, S] drawn by a dropout op over ones: the op under test must use the same
/// elements.
Numbers keep_factors(std::int64_t elements, double p, std::int64_t offset, double counter) {
  PlanSketch sketch;
  const auto x = sketch.buffer("x", DType::f64, {elements}), y = sketch.buffer("y", DType::f64, {elements});
  sketch.op(OpKind::dropout, {x, sketch.rng_counter}, {y}, {{"p", p}, {"rng_offset", offset}});
  OpHarness run(sketch.finish());
  run.set(x, Numbers(static_cast<std::size_t>(elements), 1.0));
  run.set(sketch.rng_counter, {counter});
  run.run(0);
  return run.get(y);
}

TEST_P(OpForward, AttentionCausalGroupedAndWithDropout) {
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t B = dims.micro_batch, S = dims.seq_length, H = 4, K = 2, d = 4, width = (H + 2 * K) * d,
                     T = B * S;
  for (const bool causal : {true, false}) {
    for (const double p : {0.0, 0.3}) {
      PlanSketch sketch;
      const auto qkv = sketch.buffer("qkv", type(), {T, width}), o = sketch.buffer("o", type(), {T, H * d});
      const auto lse = sketch.buffer("lse", DType::f32, {B, H, S});
      sketch.op(OpKind::attention, {qkv, sketch.rng_counter}, {o, lse},
                {{"batch", B},
                 {"causal", causal},
                 {"head_dim", d},
                 {"heads", H},
                 {"kv_heads", K},
                 {"p", p},
                 {"rng_offset", std::int64_t{9}},
                 {"scale", 0.5},
                 {"seq_length", S}});
      OpHarness run(sketch.finish());
      const Numbers x = numbers(T * width, 5);
      run.set(qkv, x);
      run.set(sketch.rng_counter, {3});
      run.run(0);
      const Numbers keep = keep_factors(B * H * S * S, p, 9, 3);
      Numbers want_o(static_cast<std::size_t>(T * H * d)), want_lse(static_cast<std::size_t>(B * H * S));
      for (std::int64_t b = 0; b < B; ++b) {
        for (std::int64_t h = 0; h < H; ++h) {
          const std::int64_t kv = h / (H / K);
          for (std::int64_t i = 0; i < S; ++i) {
            Numbers scores(static_cast<std::size_t>(S), -std::numeric_limits<double>::infinity());
            double total = 0;
            for (std::int64_t j = 0; j < (causal ? i + 1 : S); ++j) {
              double dot = 0;
              for (std::int64_t e = 0; e < d; ++e)
                dot += x[(b * S + i) * width + h * d + e] * x[(b * S + j) * width + (H + kv) * d + e];
              scores[j] = 0.5 * dot;
              total += std::exp(scores[j]);
            }
            want_lse[(b * H + h) * S + i] = std::log(total);
            for (std::int64_t j = 0; j < S; ++j) {
              const double weight = std::exp(scores[j]) / total * keep[((b * H + h) * S + i) * S + j];
              for (std::int64_t e = 0; e < d; ++e)
                want_o[(b * S + i) * H * d + h * d + e] +=
                    weight * x[(b * S + j) * width + (H + K + kv) * d + e];
            }
          }
        }
      }
      expect_near(run.get(o), want_o, tolerance(), "o");
      expect_near(run.get(lse), want_lse, 2e-6, "lse");
    }
  }
}

TEST_P(OpForward, Activations) {
  const std::int64_t rows = 5, F = 21;
  PlanSketch sketch;
  const auto gate_up = sketch.buffer("gate_up", type(), {rows, 2 * F}),
             h = sketch.buffer("h", type(), {rows, F});
  const auto x = sketch.buffer("x", type(), {rows, F}), exact = sketch.buffer("exact", type(), {rows, F}),
             tanh = sketch.buffer("tanh", type(), {rows, F}), sum = sketch.buffer("sum", type(), {rows, F});
  sketch.op(OpKind::swiglu, {gate_up}, {h});
  sketch.op(OpKind::gelu, {x}, {exact}, {{"tanh", false}});
  sketch.op(OpKind::gelu, {x}, {tanh}, {{"tanh", true}});
  sketch.op(OpKind::add, {x, exact}, {sum});
  OpHarness run(sketch.finish());
  Numbers g = numbers(rows * 2 * F, 1), v = numbers(rows * F, 2);
  for (double& value : v) value *= 4;
  v = rounded(v, type());
  run.set(gate_up, g);
  run.set(x, v);
  run.run_all();
  Numbers want_h, want_exact, want_tanh;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < F; ++j) {
      const double gate = g[i * 2 * F + j];
      want_h.push_back(gate / (1 + std::exp(-gate)) * g[i * 2 * F + F + j]);
    }
  }
  for (const double value : v) {
    want_exact.push_back(value * 0.5 * std::erfc(-value / std::sqrt(2.0)));
    want_tanh.push_back(value /
                        (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (value + 0.044715 * std::pow(value, 3)))));
  }
  expect_near(run.get(h), want_h, tolerance(), "h");
  expect_near(run.get(exact), want_exact, tolerance(), "gelu");
  expect_near(run.get(tanh), want_tanh, tolerance(), "gelu tanh");
  Numbers want_sum = run.get(exact);
  for (std::size_t i = 0; i < v.size(); ++i) want_sum[i] += v[i];
  expect_near(run.get(sum), want_sum, tolerance(), "sum");
}

TEST_P(OpForward, DropoutScalesWhatItKeepsAndDropsTheRest) {
  const std::int64_t n = 2500;
  PlanSketch sketch;
  const auto x = sketch.buffer("x", type(), {n}), r = sketch.buffer("r", type(), {n}),
             y = sketch.buffer("y", type(), {n}), z = sketch.buffer("z", type(), {n});
  const Attributes attributes = {{"p", 0.25}, {"rng_offset", std::int64_t{4}}};
  sketch.op(OpKind::dropout, {x, sketch.rng_counter}, {y}, attributes);
  sketch.op(OpKind::dropout_add, {x, r, sketch.rng_counter}, {z}, attributes);
  OpHarness run(sketch.finish());
  const Numbers xv = numbers(n, 1), rv = numbers(n, 2), keep = keep_factors(n, 0.25, 4, 6);
  run.set(x, xv);
  run.set(r, rv);
  run.set(sketch.rng_counter, {6});
  run.run_all();
  Numbers want_y = xv, want_z = rv;
  for (std::size_t i = 0; i < xv.size(); ++i) {
    ASSERT_TRUE(keep[i] == 0 || std::fabs(keep[i] - 4.0 / 3) < 1e-12);
    want_y[i] *= keep[i];
    want_z[i] += xv[i] * keep[i];
  }
  expect_near(run.get(y), want_y, tolerance(), "y");
  expect_near(run.get(z), want_z, tolerance(), "z");
}

TEST_P(OpForward, CrossEntropyIgnoresPaddedColumns) {
  PlanSketch sketch;
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), V = dims.vocab, Vp = dims.padded_vocab;
  const auto logits = sketch.buffer("logits", type(), {T, Vp});
  const auto losses = sketch.buffer("losses", DType::f32, {T}), lse = sketch.buffer("lse", DType::f32, {T});
  sketch.op(OpKind::cross_entropy, {logits, sketch.targets}, {losses, lse}, {{"vocab", V}});
  sketch.op(OpKind::accumulate_loss, {losses, sketch.loss, sketch.nonfinite}, {sketch.loss, sketch.nonfinite},
            {{"scale", 0.125}});
  OpHarness run(sketch.finish());
  Numbers x = numbers(T * Vp, 3), targets;
  for (std::int64_t t = 0; t < T; ++t) {
    targets.push_back(static_cast<double>(t * 7 % V));
    for (std::int64_t j = V; j < Vp; ++j) x[t * Vp + j] = 100;  // would dominate if it counted
  }
  run.set(logits, x);
  run.set(sketch.targets, targets);
  run.set(sketch.loss, {2});
  run.run_all();
  Numbers want, want_lse;
  double total = 2;
  for (std::int64_t t = 0; t < T; ++t) {
    double sum = 0;
    for (std::int64_t j = 0; j < V; ++j) sum += std::exp(x[t * Vp + j]);
    want_lse.push_back(std::log(sum));
    want.push_back(std::log(sum) - x[t * Vp + static_cast<std::int64_t>(targets[t])]);
    total += 0.125 * want.back();
  }
  expect_near(run.get(lse), want_lse, 2e-6, "lse");
  expect_near(run.get(losses), want, 2e-6, "losses");
  expect_near(run.get(sketch.loss), {total}, 2e-6, "loss");
  EXPECT_EQ(run.get(sketch.nonfinite)[0], 0);
}

TEST_P(OpForward, EmbeddingAddsPositions) {
  PlanSketch sketch;
  const plan::Dims dims = PlanSketch::tiny_dims();
  const std::int64_t T = dims.tokens(), V = dims.padded_vocab, H = 8, S = dims.seq_length;
  const auto table = sketch.buffer("table", type(), {V, H}), places = sketch.buffer("places", type(), {S, H});
  const auto x = sketch.buffer("x", type(), {T, H}), y = sketch.buffer("y", type(), {T, H});
  sketch.op(OpKind::embedding, {sketch.tokens, table}, {x});
  sketch.op(OpKind::embedding, {sketch.tokens, table, places}, {y});
  OpHarness run(sketch.finish());
  const Numbers tv = numbers(V * H, 1), pv = numbers(S * H, 2);
  Numbers tokens, want_x, want_y;
  for (std::int64_t t = 0; t < T; ++t) {
    tokens.push_back(static_cast<double>(t * 5 % dims.vocab));
    for (std::int64_t j = 0; j < H; ++j) {
      want_x.push_back(tv[static_cast<std::int64_t>(tokens[t]) * H + j]);
      want_y.push_back(want_x.back() + pv[t % S * H + j]);
    }
  }
  run.set(table, tv);
  run.set(places, pv);
  run.set(sketch.tokens, tokens);
  run.run_all();
  EXPECT_EQ(run.get(x), want_x);
  expect_near(run.get(y), want_y, tolerance(), "with positions");
}

INSTANTIATE_TEST_SUITE_P(Storage, OpForward, ::testing::Values(DType::f64, DType::f32, DType::bf16),
                         [](const auto& instance) { return plan::dtype_name(instance.param); });

TEST(OpBookkeeping, CountersAndMicroBatches) {
  PlanSketch sketch;
  const plan::Dims dims = PlanSketch::tiny_dims();
  const auto load = sketch.op(OpKind::load_micro_batch, {sketch.batch, sketch.micro_batch_index},
                              {sketch.tokens, sketch.targets});
  const auto next = sketch.op(OpKind::advance_micro_batch, {sketch.micro_batch_index, sketch.rng_counter},
                              {sketch.micro_batch_index, sketch.rng_counter});
  const auto done = sketch.op(OpKind::advance_step, {sketch.step, sketch.micro_batch_index},
                              {sketch.step, sketch.micro_batch_index});
  const auto clear = sketch.op(OpKind::zero, {}, {sketch.loss, sketch.rng_counter});
  OpHarness run(sketch.finish());
  Numbers batch;
  for (int i = 0; i < dims.micro_batches * dims.micro_batch * (dims.seq_length + 1); ++i) batch.push_back(i);
  run.set(sketch.batch, batch);
  run.set(sketch.rng_counter, {40});
  run.run(next);
  run.run(load);
  // Micro-batch 1, sample 0 begins at 2 samples of 7 tokens.
  const Numbers tokens = run.get(sketch.tokens), targets = run.get(sketch.targets);
  for (int b = 0; b < 2; ++b) {
    for (int s = 0; s < 6; ++s) {
      EXPECT_EQ(tokens[b * 6 + s], (2 + b) * 7 + s);
      EXPECT_EQ(targets[b * 6 + s], (2 + b) * 7 + s + 1);
    }
  }
  EXPECT_EQ(run.get(sketch.rng_counter)[0], 41);
  run.run(done);
  EXPECT_EQ(run.get(sketch.step)[0], 1);
  EXPECT_EQ(run.get(sketch.micro_batch_index)[0], 0);
  run.set(sketch.loss, {5});
  run.run(clear);
  EXPECT_EQ(run.get(sketch.loss)[0], 0);
  EXPECT_EQ(run.get(sketch.rng_counter)[0], 0);
}

TEST(OpOptimizer, GradientNormAndFlags) {
  PlanSketch sketch;
  const auto a = sketch.buffer("a", DType::f32, {5000}), b = sketch.buffer("b", DType::bf16, {3});
  const auto op = sketch.op(OpKind::grad_norm, {a, b, sketch.nonfinite}, {sketch.norm, sketch.nonfinite});
  const auto check =
      sketch.op(OpKind::check_finite, {a, sketch.nonfinite}, {sketch.nonfinite}, {{"bit", std::int64_t{3}}});
  OpHarness run(sketch.finish());
  Numbers av = some_numbers(5000, 1);
  run.set(a, av);
  run.set(b, {1, -2, 3});
  run.run(op);
  double squares = 14;
  for (const double x : av) squares += x * x;
  EXPECT_NEAR(run.get(sketch.norm)[0], std::sqrt(squares), 1e-4);
  run.run(check);
  EXPECT_EQ(run.get(sketch.nonfinite)[0], 0);
  av[4999] = std::numeric_limits<double>::quiet_NaN();
  run.set(a, av);
  run.run(op);
  EXPECT_EQ(run.get(sketch.nonfinite)[0], 2);
  run.run(check);
  EXPECT_EQ(run.get(sketch.nonfinite)[0], 10);
  run.set(sketch.nonfinite, {0});
  run.set(a, some_numbers(5000, 1));
  run.set(b, {1, std::numeric_limits<double>::infinity(), 3});
  run.run(op);
  EXPECT_EQ(run.get(sketch.nonfinite)[0], 2);
}

TEST(OpOptimizer, LearningRateFollowsMegatronsSchedule) {
  struct Point {
    const char* style;
    std::int64_t step;
    double want;
  };
  // max 1, min 0.1, init 0.2, warm-up 4, decay 12, unit 0.5. By hand from get_lr of OptimizerParamScheduler,
  // which is stepped after the optimizer: the first step has init_lr.
  const Point points[] = {
      {"constant", 0, 0.2},
      {"constant", 2, 0.6},
      {"constant", 4, 1.0},
      {"constant", 99, 1.0},
      {"linear", 1, 0.4},
      {"linear", 8, 0.55},
      {"linear", 12, 0.1},
      {"linear", 13, 0.1},
      {"cosine", 8, 0.55},
      {"cosine", 6, 0.1 + 0.9 * 0.5 * (1 + std::cos(M_PI / 4))},
      {"cosine", 30, 0.1},
      {"inverse-square-root", 9, 2.0 / 3},
      {"inverse-square-root", 13, 0.1},
  };
  for (const Point& point : points) {
    PlanSketch sketch;
    sketch.op(OpKind::learning_rate, {sketch.step}, {sketch.rate},
              {{"decay_steps", 12.0},
               {"init_lr", 0.2},
               {"max_lr", 1.0},
               {"min_lr", 0.1},
               {"style", std::string(point.style)},
               {"unit", 0.5},
               {"warmup_steps", 4.0}});
    OpHarness run(sketch.finish());
    run.set(sketch.step, {static_cast<double>(point.step)});
    run.run(0);
    EXPECT_NEAR(run.get(sketch.rate)[0], point.want, 1e-6) << point.style << " at step " << point.step;
  }
}

TEST(OpOptimizer, AdamWClipsDecaysAndKeepsMasters) {
  for (const bool has_master : {false, true}) {
    PlanSketch sketch;
    const DType type = has_master ? DType::bf16 : DType::f32;
    const std::int64_t n = 1500;
    const auto p = sketch.buffer("p", type, {n}), g = sketch.buffer("g", DType::f32, {n}),
               m = sketch.buffer("m", DType::f32, {n}), v = sketch.buffer("v", DType::f32, {n}),
               master = sketch.buffer("master", DType::f32, {n});
    std::vector<BufferId> in = {sketch.rate, sketch.step, sketch.norm, sketch.nonfinite, p, g, m, v},
                          out = {p, m, v};
    if (has_master) in.push_back(master), out.push_back(master);
    sketch.op(OpKind::adamw, in, out,
              {{"beta1", 0.9},
               {"beta2", 0.95},
               {"clip_grad", 1.0},
               {"eps", 1e-8},
               {"has_master", has_master},
               {"weight_decay", 0.1}});
    OpHarness run(sketch.finish());
    const Numbers start = rounded(some_numbers(n, 1), DType::f32),
                  gradient = rounded(some_numbers(n, 2), DType::f32);
    run.set(has_master ? master : p, start);
    run.set(g, gradient);
    run.set(sketch.rate, {0.01});
    Numbers wp = start, wm(start.size(), 0.0), wv(start.size(), 0.0);
    for (int step = 0; step < 3; ++step) {
      const double norm = step == 1 ? 0.5 : 4.0;  // clipped, not clipped, clipped
      run.set(sketch.step, {static_cast<double>(step)});
      run.set(sketch.norm, {norm});
      run.run(0);
      for (std::size_t i = 0; i < wp.size(); ++i) {
        const double scaled = gradient[i] * (norm > 1 ? 1 / (norm + 1e-6) : 1);
        wm[i] = 0.9 * wm[i] + 0.1 * scaled;
        wv[i] = 0.95 * wv[i] + 0.05 * scaled * scaled;
        const double mhat = wm[i] / (1 - std::pow(0.9, step + 1)),
                     vhat = wv[i] / (1 - std::pow(0.95, step + 1));
        wp[i] = wp[i] * (1 - 0.01 * 0.1) - 0.01 * mhat / (std::sqrt(vhat) + 1e-8);
      }
    }
    expect_near(run.get(has_master ? master : p), wp, 3e-6, "parameter");
    if (has_master) {
      EXPECT_EQ(run.get(p), rounded(run.get(master), DType::bf16));
    }
    const Numbers before = run.get(p);
    run.set(sketch.nonfinite, {1});
    run.run(0);
    EXPECT_EQ(run.get(p), before);
  }
}

TEST(OpThreads, TheNumberOfThreadsChangesNoBit) {
  const auto result = [](unsigned threads) {
    PlanSketch sketch;
    const std::int64_t m = 230, n = 190, k = 300;
    const auto a = sketch.buffer("a", DType::f32, {m, k}), b = sketch.buffer("b", DType::f32, {k, n}),
               d = sketch.buffer("d", DType::f32, {m, n});
    sketch.op(OpKind::gemm, {a, b}, {d},
              {{"accumulate", false},
               {"epilogue", std::string("none")},
               {"k", k},
               {"m", m},
               {"n", n},
               {"transpose_a", false},
               {"transpose_b", false}});
    sketch.op(OpKind::grad_norm, {d, sketch.nonfinite}, {sketch.norm, sketch.nonfinite});
    OpHarness run(sketch.finish(), threads);
    run.set(a, some_numbers(m * k, 1));
    run.set(b, some_numbers(k * n, 2));
    run.run_all();
    Numbers all = run.get(d);
    all.push_back(run.get(sketch.norm)[0]);
    return all;
  };
  const Numbers one = result(1);
  EXPECT_EQ(one, result(2));
  EXPECT_EQ(one, result(5));
}

}  // namespace
}  // namespace capstan::runtime::testing
