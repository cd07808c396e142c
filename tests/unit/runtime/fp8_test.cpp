// fp8 numbers, their quantisation and their products on the host.
#include <cmath>

#include "runtime/ops/storage.h"
#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

TEST(Fp8, EveryNumberSurvives) {
  for (const DType format : {DType::f8e4m3, DType::f8e5m2}) {
    float before = -INFINITY;
    for (int bits = 0; bits < 256; ++bits) {
      const float value = widen_fp8(static_cast<std::uint8_t>(bits), format);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(widen_fp8(round_to_fp8(value, format), format)));
        continue;
      }
      if (std::isinf(value)) continue;  // rounding saturates
      EXPECT_EQ(round_to_fp8(value, format), bits) << plan::dtype_name(format) << " " << value;
      if (bits > 0 && bits < 128) {
        EXPECT_GT(value, before);
        // Halfway to the neighbour goes to the even one of the two.
        const float middle = (value + before) / 2;
        EXPECT_EQ(round_to_fp8(middle, format), bits % 2 == 0 ? bits : bits - 1) << value;
        EXPECT_EQ(round_to_fp8(std::nextafter(middle, value), format), bits);
      }
      before = value;
    }
  }
}

// Values of the formats' definition (Micikevicius et al., "FP8 formats for deep learning", 2022).
TEST(Fp8, KnownNumbers) {
  EXPECT_EQ(widen_fp8(0x7e, DType::f8e4m3), 448.0F);
  EXPECT_TRUE(std::isnan(widen_fp8(0x7f, DType::f8e4m3)));
  EXPECT_EQ(widen_fp8(0x01, DType::f8e4m3), std::ldexp(1.0F, -9));
  EXPECT_EQ(widen_fp8(0x08, DType::f8e4m3), std::ldexp(1.0F, -6));
  EXPECT_EQ(widen_fp8(0x38, DType::f8e4m3), 1.0F);
  EXPECT_EQ(widen_fp8(0x7b, DType::f8e5m2), 57344.0F);
  EXPECT_TRUE(std::isinf(widen_fp8(0x7c, DType::f8e5m2)));
  EXPECT_EQ(widen_fp8(0x01, DType::f8e5m2), std::ldexp(1.0F, -16));
  EXPECT_EQ(round_to_fp8(1e9F, DType::f8e4m3), 0x7e);
  EXPECT_EQ(round_to_fp8(-1e9F, DType::f8e5m2), 0xfb);
  EXPECT_EQ(round_to_fp8(0.0F, DType::f8e4m3), 0x00);
}

TEST(Fp8, QuantisesWithThePresentLargest) {
  for (const DType format : {DType::f8e4m3, DType::f8e5m2}) {
    PlanSketch sketch;
    const BufferId x = sketch.buffer("x", DType::f32, {16, 32}),
                   rows = sketch.buffer("rows", format, {16, 32}),
                   columns = sketch.buffer("columns", format, {32, 16}),
                   scale = sketch.buffer("scale", DType::f32, {1}),
                   largest = sketch.buffer("largest", DType::f32, {1024}, plan::Role::workspace);
    sketch.op(OpKind::quantize_fp8, {x}, {rows, columns, scale, largest});
    OpHarness harness(sketch.finish());
    Numbers numbers = some_numbers(16 * 32, 5);
    numbers[77] = -6.5;  // by far the largest
    harness.set(x, numbers);
    harness.run_all();
    const double factor = harness.get(scale)[0];
    EXPECT_NEAR(factor, 6.5 / largest_fp8(format), 1e-9);
    const Numbers q = harness.get(rows), t = harness.get(columns);
    EXPECT_EQ(q[77], -largest_fp8(format));
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      EXPECT_EQ(q[i], t[i % 32 * 16 + i / 32]);
      const double step = format == DType::f8e4m3 ? 1.0 / 16 : 1.0 / 8;  // half a unit in the last place
      EXPECT_NEAR(q[i] * factor, numbers[i], step * std::fabs(numbers[i]) + factor * 0.01) << i;
    }
    harness.set(x, Numbers(16 * 32, 0.0));
    harness.run_all();
    EXPECT_EQ(harness.get(scale)[0], 1.0);
    EXPECT_EQ(harness.get(rows), Numbers(16 * 32, 0.0));
  }
}

TEST(Fp8, AProductIsThatOfTheNumbersItStandsFor) {
  PlanSketch sketch;
  const std::int64_t m = 16, n = 32, k = 48;
  const BufferId a = sketch.buffer("a", DType::f32, {m, k}), b = sketch.buffer("b", DType::f32, {n, k});
  std::vector<std::pair<BufferId, BufferId>> factors;  // rows, scale
  const DType formats[] = {DType::f8e5m2, DType::f8e4m3};
  for (int i = 0; i < 2; ++i) {
    const std::string name = i == 0 ? "a" : "b";
    const std::int64_t rows = i == 0 ? m : n;
    const BufferId q = sketch.buffer(name + ".q", formats[i], {rows, k}),
                   t = sketch.buffer(name + ".t", formats[i], {k, rows}),
                   scale = sketch.buffer(name + ".scale", DType::f32, {1}),
                   largest = sketch.buffer(name + ".largest", DType::f32, {1024}, plan::Role::workspace);
    sketch.op(OpKind::quantize_fp8, {i == 0 ? a : b}, {q, t, scale, largest});
    factors.emplace_back(q, scale);
  }
  const BufferId bias = sketch.buffer("bias", DType::f32, {n}), d = sketch.buffer("d", DType::f32, {m, n});
  sketch.op(OpKind::gemm_fp8,
            {factors[0].first, factors[1].first, factors[0].second, factors[1].second, bias, d}, {d},
            {{"accumulate", true},
             {"epilogue", std::string("bias")},
             {"fast_accumulation", true},
             {"k", k},
             {"m", m},
             {"n", n}});
  OpHarness harness(sketch.finish());
  harness.set(a, some_numbers(m * k, 1));
  harness.set(b, some_numbers(n * k, 2));
  const Numbers added = some_numbers(n, 3), before = some_numbers(m * n, 4);
  harness.set(bias, added);
  harness.set(d, before);
  harness.run_all();
  const Numbers left = harness.get(factors[0].first), right = harness.get(factors[1].first),
                got = harness.get(d);
  const double factor = harness.get(factors[0].second)[0] * harness.get(factors[1].second)[0];
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::int64_t p = 0; p < k; ++p)
        sum += left[static_cast<std::size_t>(i * k + p)] * right[static_cast<std::size_t>(j * k + p)];
      const auto at = static_cast<std::size_t>(i * n + j);
      EXPECT_NEAR(got[at], sum * factor + added[static_cast<std::size_t>(j)] + before[at], 1e-5);
    }
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
