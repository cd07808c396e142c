#include "runtime/ops/philox.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime {
namespace {

// Known answers for philox4x32-10 published with the Random123 library of the generator's authors
// (kat_vectors).
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(philox4x32_10({0, 0, 0, 0}, {0, 0}),
            (PhiloxBlock{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32_10({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (PhiloxBlock{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32_10({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (PhiloxBlock{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

plan::Op dropout_op(double p, std::int64_t offset) {
  plan::Op op;
  op.kind = plan::OpKind::dropout;
  op.attributes = {{"p", p}, {"rng_offset", offset}};
  return op;
}

TEST(DropoutMask, FollowsTheCounterLayoutOfThePlan) {
  const plan::Op op = dropout_op(0.25, 77);
  OpCall call;
  call.op = &op;
  call.seed = 0x0123456789abcdefull;
  const std::uint64_t counter = 0x1'0000'0005ull;
  const DropoutMask mask(call, counter);
  const std::uint64_t first = (std::uint64_t{3} << 34) + 2;  // not aligned, element / 4 beyond 32 bits
  std::vector<double> factors(9);
  mask.fill(first, 9, factors.data());
  for (std::uint64_t i = 0; i < 9; ++i) {
    const std::uint64_t element = first + i;
    const PhiloxBlock block = philox4x32_10({static_cast<std::uint32_t>(element / 4),
                                             static_cast<std::uint32_t>((element / 4) >> 32) ^ 77u, 5u, 1u},
                                            {0x89abcdefu, 0x01234567u});
    const double want = block[element % 4] >= 0x40000000u ? 1.0 / 0.75 : 0.0;
    EXPECT_EQ(factors[i], want) << i;
  }
}

TEST(DropoutMask, KeepsTheStatedShareAndDiffersByOffsetAndCounter) {
  OpCall call;
  call.seed = 99;
  const auto draw = [&](double p, std::int64_t offset, std::uint64_t counter) {
    const plan::Op op = dropout_op(p, offset);
    call.op = &op;
    std::vector<float> factors(40000);
    DropoutMask(call, counter).fill(0, 40000, factors.data());
    return factors;
  };
  const auto one = draw(0.1, 1, 0);
  const double kept =
      static_cast<double>(std::count_if(one.begin(), one.end(), [](float f) { return f != 0; }));
  // Binomial(40000, 0.9): deviation sqrt(40000 * 0.09) = 60; five of them.
  EXPECT_NEAR(kept, 36000, 300);
  EXPECT_EQ(one, draw(0.1, 1, 0));
  EXPECT_NE(one, draw(0.1, 2, 0));
  EXPECT_NE(one, draw(0.1, 1, 1));
}

TEST(InitialWeights, AreNormalAndDoNotDependOnTheRange) {
  std::vector<double> all(20000), part(100);
  fill_normal(42, 3, 0.02, 0, 20000, all.data());
  fill_normal(42, 3, 0.02, 1234, 100, part.data());
  for (std::size_t i = 0; i < part.size(); ++i) EXPECT_EQ(part[i], all[1234 + i]);
  double sum = 0, squares = 0, beyond = 0;
  for (const double x : all) sum += x, squares += x * x, beyond += std::fabs(x) > 0.04;
  EXPECT_NEAR(sum / 20000, 0.0, 5 * 0.02 / std::sqrt(20000.0));
  EXPECT_NEAR(std::sqrt(squares / 20000), 0.02, 5 * 0.02 / std::sqrt(40000.0));
  EXPECT_NEAR(beyond / 20000, 0.0455, 0.0075);  // share beyond two deviations
  // By hand for element 5: pair (0, 1) of block 1, second number.
  const PhiloxBlock words = philox4x32_10({1, 0, 3, 0x80000000u}, {42, 0});
  const double u1 = (words[0] + 1.0) / 4294967296.0, u2 = words[1] / 4294967296.0;
  EXPECT_DOUBLE_EQ(all[5], 0.02 * std::sqrt(-2 * std::log(u1)) * std::sin(2 * std::numbers::pi * u2));
}

}  // namespace
}  // namespace capstan::runtime
