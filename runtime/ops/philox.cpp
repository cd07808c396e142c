#include "runtime/ops/philox.h"

#include <cmath>
#include <numbers>

namespace capstan::runtime {

DropoutMask::DropoutMask(const OpCall& call, std::uint64_t rng_counter)
    : key_(philox_key(call.seed)),
      offset_(static_cast<std::uint32_t>(call.op->integer("rng_offset"))),
      counter_(rng_counter),
      p_(call.op->floating("p")),
      threshold_(static_cast<std::uint64_t>(std::floor(p_ * 4294967296.0))) {}

template <typename C>
void DropoutMask::fill(std::uint64_t first, std::int64_t count, C* factors) const {
  const C kept = static_cast<C>(1.0 / (1.0 - p_));
  const std::uint64_t end = first + static_cast<std::uint64_t>(count);
  for (std::uint64_t block = first / 4; block * 4 < end; ++block) {
    const PhiloxBlock words =
        philox4x32_10({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32) ^ offset_,
                       static_cast<std::uint32_t>(counter_), static_cast<std::uint32_t>(counter_ >> 32)},
                      key_);
    for (std::uint64_t i = 0; i < 4; ++i) {
      const std::uint64_t element = block * 4 + i;
      if (element >= first && element < end) factors[element - first] = words[i] >= threshold_ ? kept : C(0);
    }
  }
}

template void DropoutMask::fill(std::uint64_t, std::int64_t, float*) const;
template void DropoutMask::fill(std::uint64_t, std::int64_t, double*) const;

void fill_normal(std::uint64_t seed, std::uint64_t stream, double stddev, std::int64_t first,
                 std::int64_t count, double* to) {
  const PhiloxKey key = philox_key(seed);
  const std::int64_t end = first + count;
  for (std::int64_t block = first / 4; block * 4 < end; ++block) {
    const auto number = static_cast<std::uint64_t>(block);
    // The top bit keeps these counters apart from those of dropout.
    const PhiloxBlock words = philox4x32_10(
        {static_cast<std::uint32_t>(number), static_cast<std::uint32_t>(number >> 32),
         static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32) | 0x80000000u},
        key);
    std::array<double, 4> normals;
    for (std::size_t pair = 0; pair < 2; ++pair) {
      const double u1 = (words[2 * pair] + 1.0) / 4294967296.0, u2 = words[2 * pair + 1] / 4294967296.0;
      const double radius = std::sqrt(-2.0 * std::log(u1)), angle = 2.0 * std::numbers::pi * u2;
      normals[2 * pair] = radius * std::cos(angle);
      normals[2 * pair + 1] = radius * std::sin(angle);
    }
    for (std::int64_t i = 0; i < 4; ++i) {
      const std::int64_t element = block * 4 + i;
      if (element >= first && element < end)
        to[element - first] = stddev * normals[static_cast<std::size_t>(i)];
    }
  }
}

}  // namespace capstan::runtime
