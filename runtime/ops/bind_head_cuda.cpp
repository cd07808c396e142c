#include <algorithm>
#include <vector>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {
namespace {

/// The work on some rows: three products around the loss.
struct Chunk {
  std::int64_t rows = 0;
  int forward = 0, of_weight = 0, of_input = 0;  ///< prepared products
  GemmOperands forward_operands, weight_operands, input_operands;
  const std::int32_t* targets = nullptr;
  float* losses = nullptr;
};

}  // namespace

Outcome<Launch> bind_linear_cross_entropy(Bindings& b, const plan::Op& op) {
  const Outcome<Floats> x = floats_of(b, op, op.inputs[0]);
  const Outcome<Floats> weight = floats_of(b, op, op.inputs[1]);
  const Outcome<Floats> dx = floats_of(b, op, op.outputs[1]);
  const Outcome<Floats> dweight = floats_of(b, op, op.outputs[2]);
  const Outcome<Floats> logits = floats_of(b, op, op.outputs[3]);
  for (const Outcome<Floats>* operand : {&x, &weight, &dx, &dweight, &logits}) {
    if (!operand->ok()) return operand->error();
  }
  if (b.plan->buffers[op.outputs[0]].dtype != plan::DType::f32)
    return unsupported_op(op, "its losses are not f32");
  const Storage storage = x.value().storage;
  const plan::Buffer& input = b.plan->buffers[op.inputs[0]];
  const std::int64_t hidden = input.shape.back(), rows = input.elements() / hidden;
  const std::int64_t columns = b.plan->buffers[op.inputs[1]].elements() / hidden;
  const std::int64_t most = op.integer("chunk_rows"), vocab = op.integer("vocab");
  const std::int64_t element = storage == Storage::bf16 ? 2 : 4;
  const auto part = [](const Floats& all, std::int64_t bytes) {
    return static_cast<std::byte*>(all.data) + bytes;
  };
  const Bindings::Region workspace = b.workspace_of(op, 4, b.product_workspace);

  std::vector<Chunk> chunks;
  for (std::int64_t first = 0; first < rows; first += most) {
    Chunk chunk;
    chunk.rows = std::min(most, rows - first);
    chunk.targets = pointer_of<std::int32_t>(b, op.inputs[2]) + first;
    chunk.losses = pointer_of<float>(b, op.outputs[0]) + first;
    std::byte* const x_part = part(x.value(), first * hidden * element);
    std::byte* const dx_part = part(dx.value(), first * hidden * element);
    const auto prepare = [&](GemmProblem problem, GemmOperands& operands, int& index) -> Status {
      operands.workspace = workspace.data;
      operands.workspace_bytes = workspace.bytes;
      const Outcome<int> entry = prepare_product(b, problem, operands);
      if (!entry.ok()) return entry.error();
      index = entry.value();
      return {};
    };
    GemmProblem forward{chunk.rows, columns, hidden};
    forward.transpose_b = true;
    forward.input = forward.output = storage;
    chunk.forward_operands = {x_part, weight.value().data, nullptr, logits.value().data};
    if (Status s = prepare(forward, chunk.forward_operands, chunk.forward); !s.ok()) return s.error();
    GemmProblem of_weight{columns, hidden, chunk.rows};
    of_weight.transpose_a = true;
    of_weight.has_addend = true;
    of_weight.input = storage;
    of_weight.output = dweight.value().storage;
    chunk.weight_operands = {logits.value().data, x_part, dweight.value().data, dweight.value().data};
    if (Status s = prepare(of_weight, chunk.weight_operands, chunk.of_weight); !s.ok()) return s.error();
    GemmProblem of_input{chunk.rows, hidden, columns};
    of_input.input = of_input.output = storage;
    chunk.input_operands = {logits.value().data, weight.value().data, nullptr, dx_part};
    if (Status s = prepare(of_input, chunk.input_operands, chunk.of_input); !s.ok()) return s.error();
    chunks.push_back(chunk);
  }
  if (Status s = check(prepare_cross_entropy_in_place(storage, columns), "cudaFuncSetAttribute", &op);
      !s.ok())
    return s.error();
  const GemmLibrary* library = b.gemms.get();
  const auto scale = static_cast<float>(op.floating("scale"));
  return Launch([=, l = logits.value()](cudaStream_t stream) {
    for (const Chunk& chunk : chunks) {
      if (Status s = library->run(stream, chunk.forward, chunk.forward_operands); !s.ok()) return s;
      launch_cross_entropy_in_place(stream, l, chunk.targets, chunk.losses, chunk.rows, columns, vocab,
                                    scale);
      if (Status s = library->run(stream, chunk.of_weight, chunk.weight_operands); !s.ok()) return s;
      if (Status s = library->run(stream, chunk.of_input, chunk.input_operands); !s.ok()) return s;
    }
    return Status();
  });
}

}  // namespace capstan::runtime::cuda
