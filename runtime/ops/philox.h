// Philox4x32-10, the counter-based generator of Salmon et al. (SC 2011), and what the plan draws from it:
// dropout masks and initial weights (docs/plan-format.md, "Random numbers"). Stateless: element and counter
// give the number.
#pragma once

#include <array>
#include <cstdint>

#include "runtime/ops/op_call.h"

namespace capstan::runtime {

using PhiloxBlock = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

constexpr PhiloxKey philox_key(std::uint64_t seed) {
  return {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)};
}

constexpr PhiloxBlock philox4x32_10(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t low = std::uint64_t{0xD2511F53u} * counter[0],
                        high = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(high >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(high),
               static_cast<std::uint32_t>(low >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(low)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// Factors of one dropout: 0 for a dropped element, 1/(1-p) for a kept one.
class DropoutMask {
 public:
  /// Attributes `p` and `rng_offset` of the op; `rng_counter` as it is in memory now.
  DropoutMask(const OpCall& call, std::uint64_t rng_counter);

  bool active() const { return p_ > 0.0; }
  /// Factors of elements first .. first+count.
  template <typename C>
  void fill(std::uint64_t first, std::int64_t count, C* factors) const;

 private:
  PhiloxKey key_;
  std::uint32_t offset_;
  std::uint64_t counter_;
  double p_;
  std::uint64_t threshold_;  ///< floor(p * 2^32)
};

/// Elements first .. first+count of a buffer's initial normal weights: mean 0, the given deviation.
void fill_normal(std::uint64_t seed, std::uint64_t stream, double stddev, std::int64_t first,
                 std::int64_t count, double* to);

}  // namespace capstan::runtime
