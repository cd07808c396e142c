#include "runtime/data/sampler.h"

#include <algorithm>
#include <bit>

#include <fmt/format.h>

#include "runtime/execute/interrupt.h"
#include "runtime/ops/philox.h"

namespace capstan::runtime {

std::uint64_t shuffled(std::uint64_t index, std::uint64_t count, std::uint64_t seed, std::uint64_t round) {
  if (count <= 1) return 0;
  // Two halves of equal width that together cover 0..count; at most four times too many values to walk over.
  const int half = std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = index >> half, right = index & mask;
    for (std::uint32_t turn = 0; turn < 4; ++turn) {
      const PhiloxBlock words =
          philox4x32_10({static_cast<std::uint32_t>(right), static_cast<std::uint32_t>(round),
                         static_cast<std::uint32_t>(round >> 32), 0x5a3b1e00u | turn},
                        philox_key(seed));
      const std::uint64_t mixed = left ^ ((std::uint64_t{words[1]} << 32 | words[0]) & mask);
      left = right;
      right = mixed;
    }
    index = left << half | right;
  } while (index >= count);
  return index;
}

Sampler::Sampler(const plan::Plan& plan, const TokenSource& source)
    : plan_(plan),
      source_(source),
      samples_((source.count() - 1) / static_cast<std::uint64_t>(plan.dims.seq_length)) {}

Status Sampler::fill(std::uint64_t step, std::span<std::int32_t> batch) const {
  const plan::Dims& dims = plan_.dims;
  const auto length = static_cast<std::uint64_t>(dims.seq_length);
  const auto per_step = static_cast<std::uint64_t>(dims.micro_batches * dims.micro_batch);
  for (std::uint64_t i = 0; i < per_step; ++i) {
    if (Status on = go_on_unless_overdue(); !on.ok()) return on;
    const std::uint64_t sample = step * per_step + i;
    const std::uint64_t window = shuffled(sample % samples_, samples_, plan_.data.seed, sample / samples_);
    const auto out = batch.subspan(i * (length + 1), length + 1);
    if (Status read = source_.read(window * length, out); !read.ok()) return read;
    const auto beyond =
        std::find_if(out.begin(), out.end(), [&](std::int32_t t) { return t < 0 || t >= dims.vocab; });
    if (beyond != out.end()) {
      return run_problem(
          "RN012",
          fmt::format("the dataset `{}` holds the token {} at {}, but the vocabulary has {} tokens",
                      source_.name(), *beyond,
                      window * length + static_cast<std::uint64_t>(beyond - out.begin()), dims.vocab),
          {{"path", source_.name()}}, "the dataset was made with another tokenizer than the model's");
    }
  }
  return {};
}

}  // namespace capstan::runtime
