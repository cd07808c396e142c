#include <algorithm>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/philox.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

constexpr std::int64_t kMaskChunk = 1024;

/// out = x times the mask's factors (+ residual).
template <typename C>
void drop(const OpCall& call, const Operand* residual, const Operand& rng_counter) {
  const Operand &x = call.inputs[0], &out = call.outputs[0];
  const DropoutMask mask(call, *rng_counter.as<std::uint64_t>());
  const std::int64_t chunks = (out.elements + kMaskChunk - 1) / kMaskChunk;
  call.workers->for_ranges(chunks, 4, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> in_row, residual_row, factor_row;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t at = chunk * kMaskChunk, count = std::min(kMaskChunk, out.elements - at);
      C* values = in_row.copy(x, at, count);
      if (mask.active()) {
        C* factors = factor_row.space(count);
        mask.fill(static_cast<std::uint64_t>(at), count, factors);
        // A dropped element is zero whatever it was, also when it was not finite.
        for (std::int64_t i = 0; i < count; ++i)
          values[i] = factors[i] == C(0) ? C(0) : values[i] * factors[i];
      }
      if (residual != nullptr) {
        const C* added = residual_row.read(*residual, at, count);
        for (std::int64_t i = 0; i < count; ++i) values[i] = added[i] + values[i];
      }
      store(out, at, count, values);
    }
  });
}

}  // namespace

void dropout(const OpCall& call) {
  in_compute_type(call, [&](auto type) { drop<decltype(type)>(call, nullptr, call.inputs[1]); });
}
void dropout_add(const OpCall& call) {
  in_compute_type(call, [&](auto type) { drop<decltype(type)>(call, &call.inputs[1], call.inputs[2]); });
}
void dropout_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { drop<decltype(type)>(call, nullptr, call.inputs[1]); });
}

}  // namespace capstan::runtime::host
