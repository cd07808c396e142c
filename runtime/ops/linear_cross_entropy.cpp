#include <algorithm>
#include <string>

#include "runtime/ops/host_ops.h"

// The reference is what the op stands for: the product, the loss and their backward ops on some rows at a
// time.
namespace capstan::runtime::host {
namespace {

Operand rows_of(const Operand& all, std::int64_t first, std::int64_t count, std::int64_t columns) {
  Operand part = all;
  part.data += static_cast<std::uint64_t>(first * columns) * plan::size_of(all.dtype);
  part.elements = count * columns;
  part.columns = columns;
  return part;
}

plan::Op product(std::int64_t m, std::int64_t n, std::int64_t k, bool transpose_a, bool transpose_b,
                 bool accumulate) {
  plan::Op op;
  op.kind = plan::OpKind::gemm;
  op.attributes = {
      {"accumulate", accumulate},   {"epilogue", std::string("none")}, {"k", k}, {"m", m}, {"n", n},
      {"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
  return op;
}

}  // namespace

void linear_cross_entropy(const OpCall& call) {
  const Operand &x = call.inputs[0], &weight = call.inputs[1], &targets = call.inputs[2];
  const Operand &losses = call.outputs[0], &dx = call.outputs[1], &dweight = call.outputs[2];
  const std::int64_t hidden = x.columns, rows = x.rows(), columns = weight.rows();
  const std::int64_t chunk = call.op->integer("chunk_rows"), vocab = call.op->integer("vocab");
  std::vector<std::byte> lse(static_cast<std::size_t>(chunk) * plan::size_of(losses.dtype));
  plan::Op loss, loss_backward;
  loss.kind = plan::OpKind::cross_entropy;
  loss.attributes = {{"vocab", vocab}};
  loss_backward.kind = plan::OpKind::cross_entropy_backward;
  loss_backward.attributes = {{"scale", call.op->floating("scale")}, {"vocab", vocab}};
  const auto run = [&](HostOp function, const plan::Op& op, std::vector<Operand> inputs,
                       std::vector<Operand> outputs) {
    OpCall part = call;
    part.op = &op;
    part.inputs = std::move(inputs);
    part.outputs = std::move(outputs);
    function(part);
  };
  for (std::int64_t first = 0; first < rows; first += chunk) {
    const std::int64_t count = std::min(chunk, rows - first);
    const Operand x_part = rows_of(x, first, count, hidden), dx_part = rows_of(dx, first, count, hidden);
    const Operand logits = rows_of(call.outputs[3], 0, count, columns);
    const Operand target_part = rows_of(targets, first, count, 1),
                  loss_part = rows_of(losses, first, count, 1);
    const Operand lse_part{lse.data(), losses.dtype, count, 1};
    run(gemm, product(count, columns, hidden, false, true, false), {x_part, weight}, {logits});
    run(cross_entropy, loss, {logits, target_part}, {loss_part, lse_part});
    run(cross_entropy_backward, loss_backward, {logits, target_part, lse_part}, {logits});
    run(gemm, product(columns, hidden, count, true, false, true), {logits, x_part, dweight}, {dweight});
    run(gemm, product(count, hidden, columns, false, false, false), {logits, weight}, {dx_part});
  }
}

}  // namespace capstan::runtime::host
