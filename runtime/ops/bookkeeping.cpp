#include <algorithm>
#include <cstring>

#include "runtime/ops/host_ops.h"

namespace capstan::runtime::host {

void load_micro_batch(const OpCall& call) {
  const plan::Dims& dims = *call.dims;
  const std::int64_t length = dims.seq_length;
  // Within the batch even when a plan counts too far.
  const std::int64_t index =
      std::clamp<std::int64_t>(*call.inputs[1].as<std::int64_t>(), 0, dims.micro_batches - 1);
  for (std::int64_t b = 0; b < dims.micro_batch; ++b) {
    const std::int32_t* sample =
        call.inputs[0].as<std::int32_t>() + (index * dims.micro_batch + b) * (length + 1);
    std::copy(sample, sample + length, call.outputs[0].as<std::int32_t>() + b * length);
    std::copy(sample + 1, sample + length + 1, call.outputs[1].as<std::int32_t>() + b * length);
  }
}

void zero(const OpCall& call) {
  for (const Operand& operand : call.outputs) {
    std::memset(operand.data, 0, static_cast<std::size_t>(operand.elements) * plan::size_of(operand.dtype));
  }
}

void advance_micro_batch(const OpCall& call) {
  *call.outputs[0].as<std::int64_t>() += 1;
  *call.outputs[1].as<std::uint64_t>() += 1;
}

void advance_step(const OpCall& call) {
  *call.outputs[0].as<std::int64_t>() += 1;
  *call.outputs[1].as<std::int64_t>() = 0;
}

}  // namespace capstan::runtime::host
