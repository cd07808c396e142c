// Which tokens a step trains on. Sample g (counted over all steps and micro-batches) is a window of
// seq_length + 1 tokens; the windows of an epoch do not overlap (but for the target of the last token) and
// come in a seeded order that differs from epoch to epoch. Stateless: the step alone gives the batch, so a
// resumed run sees what the first would have seen.
#pragma once

#include <cstdint>
#include <span>

#include "runtime/data/token_source.h"

namespace capstan::runtime {

/// Position of element `index` in the `round`-th order of 0..count, from a keyed bijection (Feistel network
/// with cycle walking): no memory, whatever the count.
std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t round);

class Sampler {
 public:
  /// Both must outlive the sampler; the source holds at least one sample.
  Sampler(const plan::Plan& plan, const TokenSource& source);

  /// Batch of a step, [micro_batches, micro_batch, seq_length + 1]. RN012 when a token is not below the
  /// vocabulary, RN010 when a file of the source became shorter, RN033 when a signal has waited long enough.
  Status fill(std::uint64_t step, std::span<std::int32_t> batch) const;

 private:
  const plan::Plan& plan_;
  const TokenSource& source_;
  std::uint64_t samples_;  ///< per epoch
};

}  // namespace capstan::runtime
