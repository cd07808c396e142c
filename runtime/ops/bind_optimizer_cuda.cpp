#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {
namespace {

using plan::BufferId;
using plan::Op;
using plan::OpKind;

struct DeviceTensors {
  const OptimizerTensor* tensors = nullptr;
  const TensorChunk* chunks = nullptr;
  std::int64_t chunk_count = 0;
};

Outcome<DeviceTensors> to_device(Bindings& b, const std::vector<OptimizerTensor>& tensors) {
  std::vector<TensorChunk> chunks;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const std::int64_t count = (tensors[t].count + kChunkElements - 1) / kChunkElements;
    for (std::int64_t c = 0; c < count; ++c) {
      chunks.push_back({static_cast<std::int32_t>(t), static_cast<std::int32_t>(c)});
    }
  }
  Outcome<void*> tensor_table = b.add_table(tensors.data(), tensors.size() * sizeof(OptimizerTensor));
  if (!tensor_table.ok()) return tensor_table.error();
  Outcome<void*> chunk_table = b.add_table(chunks.data(), chunks.size() * sizeof(TensorChunk));
  if (!chunk_table.ok()) return chunk_table.error();
  return DeviceTensors{static_cast<const OptimizerTensor*>(tensor_table.value()),
                       static_cast<const TensorChunk*>(chunk_table.value()),
                       static_cast<std::int64_t>(chunks.size())};
}

Outcome<Launch> bind_adamw(Bindings& b, const Op& op) {
  const bool has_master = op.boolean("has_master");
  const std::size_t per_parameter = has_master ? 5 : 4;
  std::vector<OptimizerTensor> tensors;
  for (std::size_t i = 4; i < op.inputs.size(); i += per_parameter) {
    OptimizerTensor tensor;
    Outcome<Floats> parameter = floats_of(b, op, op.inputs[i]);
    if (!parameter.ok()) return parameter.error();
    Outcome<Floats> gradient = floats_of(b, op, op.inputs[i + 1]);
    if (!gradient.ok()) return gradient.error();
    for (std::size_t state = i + 2; state < i + per_parameter; ++state) {
      const plan::Buffer& buffer = b.plan->buffers[op.inputs[state]];
      if (buffer.dtype != plan::DType::f32) return unsupported_op(op, "`" + buffer.name + "` is not f32");
    }
    if (!has_master && parameter.value().storage != Storage::f32) {
      return unsupported_op(
          op, "the parameter `" + b.plan->buffers[op.inputs[i]].name + "` is narrow and has no master");
    }
    tensor.parameter = parameter.value().data;
    tensor.parameter_storage = parameter.value().storage;
    tensor.gradient = gradient.value().data;
    tensor.gradient_storage = gradient.value().storage;
    tensor.moment1 = pointer_of<float>(b, op.inputs[i + 2]);
    tensor.moment2 = pointer_of<float>(b, op.inputs[i + 3]);
    if (has_master) tensor.master = pointer_of<float>(b, op.inputs[i + 4]);
    tensor.count = b.plan->buffers[op.inputs[i]].elements();
    tensors.push_back(tensor);
  }
  Outcome<DeviceTensors> tables = to_device(b, tensors);
  if (!tables.ok()) return tables.error();
  AdamW adamw;
  adamw.beta1 = op.floating("beta1");
  adamw.beta2 = op.floating("beta2");
  adamw.epsilon = static_cast<float>(op.floating("eps"));
  adamw.weight_decay = static_cast<float>(op.floating("weight_decay"));
  adamw.clip_grad = op.floating("clip_grad");
  const auto* rate = pointer_of<float>(b, op.inputs[0]);
  const auto* step = pointer_of<std::int64_t>(b, op.inputs[1]);
  const auto* norm = pointer_of<float>(b, op.inputs[2]);
  const auto* nonfinite = pointer_of<std::int32_t>(b, op.inputs[3]);
  return Launch([=, t = tables.value()](cudaStream_t stream) {
    launch_adamw(stream, t.tensors, t.chunks, t.chunk_count, adamw, rate, step, norm, nonfinite);
    return Status();
  });
}

Outcome<Launch> bind_grad_norm(Bindings& b, const Op& op) {
  std::vector<OptimizerTensor> tensors;
  for (std::size_t i = 0; i + 1 < op.inputs.size(); ++i) {
    Outcome<Floats> gradient = floats_of(b, op, op.inputs[i]);
    if (!gradient.ok()) return gradient.error();
    OptimizerTensor tensor;
    tensor.gradient = gradient.value().data;
    tensor.gradient_storage = gradient.value().storage;
    tensor.count = b.plan->buffers[op.inputs[i]].elements();
    tensors.push_back(tensor);
  }
  Outcome<DeviceTensors> tables = to_device(b, tensors);
  if (!tables.ok()) return tables.error();
  float* partial = nullptr;
  std::int64_t partial_floats = kGradNormBlocks;
  if (op.outputs.size() > 2) {
    const plan::Buffer& buffer = b.plan->buffers[op.outputs[2]];
    if (buffer.dtype != plan::DType::f32) return unsupported_op(op, "`" + buffer.name + "` is not f32");
    partial = pointer_of<float>(b, op.outputs[2]);
    partial_floats = buffer.elements();
  } else {
    Outcome<void*> table = b.add_table(nullptr, kGradNormBlocks * sizeof(float));
    if (!table.ok()) return table.error();
    partial = static_cast<float*>(table.value());
  }
  auto* norm = pointer_of<float>(b, op.outputs[0]);
  auto* nonfinite = pointer_of<std::int32_t>(b, op.outputs[1]);
  return Launch([=, t = tables.value()](cudaStream_t stream) {
    launch_grad_norm(stream, t.tensors, t.chunks, t.chunk_count, partial, partial_floats, norm, nonfinite);
    return Status();
  });
}

// Neighbours in the arena become one range: what lies between two buffers is the padding of the first.
Outcome<Launch> bind_zero(Bindings& b, const Op& op) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;  // first byte, end
  for (const BufferId id : op.outputs) {
    const plan::Buffer& buffer = b.plan->buffers[id];
    ranges.emplace_back(buffer.offset, buffer.offset + buffer.bytes());
  }
  std::sort(ranges.begin(), ranges.end());
  std::vector<std::pair<std::uint64_t, std::uint64_t>> merged;
  for (const auto& range : ranges) {
    if (!merged.empty() && range.first < merged.back().second + plan::kBufferAlignment) {
      merged.back().second = std::max(merged.back().second, range.second);
    } else {
      merged.push_back(range);
    }
  }
  return Launch([merged, arena = b.arena](cudaStream_t stream) {
    for (const auto& [first, end] : merged) {
      if (Status s = check(cudaMemsetAsync(arena + first, 0, end - first, stream), "cudaMemsetAsync");
          !s.ok())
        return s;
    }
    return Status();
  });
}

Outcome<Launch> bind_learning_rate(Bindings& b, const Op& op) {
  if (b.plan->buffers[op.outputs[0]].dtype != plan::DType::f32)
    return unsupported_op(op, "the learning rate is not f32");
  using Style = LearningRate::Style;
  LearningRate schedule;
  const std::string& style = op.text("style");
  schedule.style = style == "constant" ? Style::constant
                   : style == "linear" ? Style::linear
                   : style == "cosine" ? Style::cosine
                                       : Style::inverse_square_root;
  schedule.max_lr = op.floating("max_lr");
  schedule.min_lr = op.floating("min_lr");
  schedule.init_lr = op.floating("init_lr");
  schedule.warmup_steps = op.floating("warmup_steps");
  schedule.decay_steps = op.floating("decay_steps");
  schedule.unit = op.floating("unit");
  const auto* step = pointer_of<std::int64_t>(b, op.inputs[0]);
  auto* rate = pointer_of<float>(b, op.outputs[0]);
  return Launch([=](cudaStream_t stream) {
    launch_learning_rate(stream, schedule, step, rate);
    return Status();
  });
}

}  // namespace

Outcome<Launch> bind_optimizer(Bindings& b, const Op& op) {
  switch (op.kind) {
    case OpKind::adamw:
      return bind_adamw(b, op);
    case OpKind::grad_norm:
      return bind_grad_norm(b, op);
    case OpKind::zero:
      return bind_zero(b, op);
    default:
      return bind_learning_rate(b, op);
  }
}

}  // namespace capstan::runtime::cuda
