#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {
namespace {

using plan::Buffer;
using plan::BufferId;
using plan::Op;
using plan::OpKind;

/// Resolves operands one by one; the first that the backend cannot take is kept, and later results are then
/// unused.
class Operands {
 public:
  Operands(Bindings& bindings, const Op& op) : bindings_(bindings), op_(op) {}

  Floats in(std::size_t i) { return floats(op_.inputs[i]); }
  Floats out(std::size_t i) { return floats(op_.outputs[i]); }
  /// As in(i), of the same storage as `like`: kernels take one storage for activations.
  Floats in_like(std::size_t i, Floats like) { return same(op_.inputs[i], like); }
  Floats out_like(std::size_t i, Floats like) { return same(op_.outputs[i], like); }
  float* statistics_in(std::size_t i) { return statistics(op_.inputs[i]); }
  float* statistics_out(std::size_t i) { return statistics(op_.outputs[i]); }
  template <typename T>
  T* integers_in(std::size_t i) {
    return pointer_of<T>(bindings_, op_.inputs[i]);
  }
  template <typename T>
  T* integers_out(std::size_t i) {
    return pointer_of<T>(bindings_, op_.outputs[i]);
  }
  /// Output i as f32 scratch, or memory of `floats` floats where the plan gives none.
  float* scratch(std::size_t i, std::int64_t floats, std::int64_t& available) {
    if (i < op_.outputs.size()) {
      available = bindings_.plan->buffers[op_.outputs[i]].elements();
      float* data = statistics(op_.outputs[i]);
      if (available < floats) fail("the workspace `" + buffer(op_.outputs[i]).name + "` is too small");
      return data;
    }
    Outcome<void*> table = bindings_.add_table(nullptr, static_cast<std::size_t>(floats) * sizeof(float));
    available = floats;
    if (table.ok()) return static_cast<float*>(table.value());
    if (!problem.has_value()) problem = table.error();
    return nullptr;
  }
  /// `count` zeros that launches leave as zeros.
  unsigned* tickets(std::int64_t count) {
    const std::vector<unsigned> zeros(static_cast<std::size_t>(count), 0U);
    Outcome<void*> table = bindings_.add_table(zeros.data(), zeros.size() * sizeof(unsigned));
    if (table.ok()) return static_cast<unsigned*>(table.value());
    if (!problem.has_value()) problem = table.error();
    return nullptr;
  }
  const Buffer& buffer(BufferId id) const { return bindings_.plan->buffers[id]; }
  std::int64_t elements_in(std::size_t i) const { return buffer(op_.inputs[i]).elements(); }
  std::int64_t elements_out(std::size_t i) const { return buffer(op_.outputs[i]).elements(); }
  std::int64_t columns_in(std::size_t i) const { return buffer(op_.inputs[i]).shape.back(); }
  std::int64_t columns_out(std::size_t i) const { return buffer(op_.outputs[i]).shape.back(); }
  void fail(const std::string& why) {
    if (!problem.has_value()) problem = unsupported_op(op_, why);
  }

  std::optional<Diagnostic> problem;

 private:
  Floats floats(BufferId id) {
    Outcome<Floats> resolved = floats_of(bindings_, op_, id);
    if (resolved.ok()) return resolved.value();
    if (!problem.has_value()) problem = resolved.error();
    return {};
  }
  Floats same(BufferId id, Floats like) {
    const Floats resolved = floats(id);
    if (resolved.storage != like.storage) {
      fail("`" + buffer(id).name + "` is " + plan::dtype_name(buffer(id).dtype) +
           ", other than the operands beside it");
    }
    return resolved;
  }
  float* statistics(BufferId id) {
    if (buffer(id).dtype != plan::DType::f32) {
      fail("`" + buffer(id).name + "` is " + plan::dtype_name(buffer(id).dtype) + ", and must be f32");
    }
    return pointer_of<float>(bindings_, id);
  }

  Bindings& bindings_;
  const Op& op_;
};

/// The launch, unless an operand was refused.
template <typename Body>
Outcome<Launch> finish(const Operands& operands, Body body) {
  if (operands.problem.has_value()) return *operands.problem;
  return Launch([body = std::move(body)](cudaStream_t stream) {
    body(stream);
    return Status();
  });
}

Outcome<Launch> bind_embedding(Bindings& b, const Op& op) {
  Operands o(b, op);
  const plan::Dims& dims = b.plan->dims;
  const std::int64_t hidden = o.columns_in(1);
  const std::int64_t vocab = o.elements_in(1) / hidden;
  const Floats x = o.out(0);
  const Floats table = o.in_like(1, x);
  const Floats positions = op.inputs.size() > 2 ? o.in_like(2, x) : Floats{};
  const auto* tokens = o.integers_in<std::int32_t>(0);
  const std::int64_t count = o.elements_in(0);
  return finish(o, [=, seq = dims.seq_length](cudaStream_t stream) {
    launch_embedding(stream, tokens, table, positions, x, count, vocab, hidden, seq);
  });
}

Outcome<Launch> bind_embedding_backward(Bindings& b, const Op& op) {
  Operands o(b, op);
  const std::int64_t hidden = o.columns_in(2);
  const std::int64_t vocab = o.elements_in(2) / hidden;
  const Floats dx = o.in(0);
  const Floats dtable = o.out(0);
  const Floats dposition = op.inputs.size() > 3 ? o.out(1) : Floats{};
  const auto* tokens = o.integers_in<std::int32_t>(1);
  const std::int64_t count = o.elements_in(1);
  return finish(o, [=, seq = b.plan->dims.seq_length](cudaStream_t stream) {
    launch_embedding_backward(stream, dx, tokens, dtable, dposition, count, vocab, hidden, seq);
  });
}

Outcome<Launch> bind_norm(Bindings& b, const Op& op) {
  Operands o(b, op);
  const bool centered = op.kind == OpKind::layer_norm;
  NormForward norm;
  norm.x = o.in(0);
  norm.weight = o.in(1);
  if (centered) norm.bias = o.in(2);
  norm.y = o.out_like(0, norm.x);
  if (centered) norm.mean = o.statistics_out(1);
  norm.rstd = o.statistics_out(centered ? 2 : 1);
  norm.hidden = o.elements_in(1);
  norm.rows = o.elements_in(0) / norm.hidden;
  norm.epsilon = static_cast<float>(op.floating("eps"));
  return finish(o, [norm](cudaStream_t stream) { launch_norm(stream, norm); });
}

Outcome<Launch> bind_norm_backward(Bindings& b, const Op& op) {
  Operands o(b, op);
  const bool centered = op.kind == OpKind::layer_norm_backward;
  NormBackward norm;
  norm.dy = o.in(0);
  norm.x = o.in_like(1, norm.dy);
  norm.weight = o.in(2);
  if (centered) norm.mean = o.statistics_in(3);
  norm.rstd = o.statistics_in(centered ? 4 : 3);
  norm.dx = o.out_like(0, norm.dy);
  norm.dweight = o.out(1);
  if (centered) norm.dbias = o.out(2);
  norm.hidden = o.elements_in(2);
  norm.rows = o.elements_in(0) / norm.hidden;
  norm.accumulate_dx = op.boolean("accumulate_dx");
  const std::int64_t kinds = centered ? 2 : 1;
  norm.partial = o.scratch(centered ? 3 : 2, kinds * norm.hidden, norm.partial_floats);
  return finish(o, [norm](cudaStream_t stream) { launch_norm_backward(stream, norm); });
}

Outcome<Launch> bind_rope(Bindings& b, const Op& op) {
  Operands o(b, op);
  Rope rope;
  rope.qkv = o.in(0);
  rope.seq_length = op.integer("seq_length");
  rope.heads = op.integer("heads");
  rope.kv_heads = op.integer("kv_heads");
  rope.head_dim = op.integer("head_dim");
  rope.rotary_dim = op.integer("rotary_dim");
  rope.rows = o.elements_in(0) / ((rope.heads + 2 * rope.kv_heads) * rope.head_dim);
  rope.base = op.floating("base");
  rope.interleaved = op.boolean("interleaved");
  rope.inverse = op.boolean("inverse");
  const std::string key = std::to_string(rope.seq_length) + " " + std::to_string(rope.rotary_dim) + " " +
                          std::to_string(rope.base);
  auto [angles, is_new] = b.rope_angles.try_emplace(key);
  if (is_new) {
    const auto pairs = static_cast<std::size_t>(rope.seq_length * (rope.rotary_dim / 2));
    Outcome<void*> table = b.add_table(nullptr, pairs * 2 * sizeof(float));
    if (!table.ok()) return table.error();
    angles->second = table.value();
    launch_rope_angles(b.stream, rope, angles->second);
  }
  rope.angles = angles->second;
  return finish(o, [rope](cudaStream_t stream) { launch_rope(stream, rope); });
}

Outcome<Launch> bind_activation(Bindings& b, const Op& op) {
  Operands o(b, op);
  const Floats out = o.out(0);
  const Floats first = o.in_like(0, out);
  switch (op.kind) {
    case OpKind::swiglu: {
      const std::int64_t ffn = o.columns_out(0);
      const std::int64_t rows = o.elements_out(0) / ffn;
      return finish(o, [=](cudaStream_t stream) { launch_swiglu(stream, first, out, rows, ffn); });
    }
    case OpKind::swiglu_backward: {
      const Floats gate_up = o.in_like(1, out);
      const std::int64_t ffn = o.columns_in(0);
      const std::int64_t rows = o.elements_in(0) / ffn;
      return finish(
          o, [=](cudaStream_t stream) { launch_swiglu_backward(stream, first, gate_up, out, rows, ffn); });
    }
    case OpKind::gelu: {
      const bool tanh_form = op.boolean("tanh");
      const std::int64_t count = o.elements_out(0);
      return finish(o, [=](cudaStream_t stream) { launch_gelu(stream, first, out, count, tanh_form); });
    }
    default: {
      const Floats x = o.in_like(1, out);
      const bool tanh_form = op.boolean("tanh");
      const std::int64_t count = o.elements_out(0);
      return finish(
          o, [=](cudaStream_t stream) { launch_gelu_backward(stream, first, x, out, count, tanh_form); });
    }
  }
}

// dropout, dropout_add, dropout_backward, add.
Outcome<Launch> bind_residual(Bindings& b, const Op& op) {
  Operands o(b, op);
  const Floats out = o.out(0);
  const Floats x = o.in_like(0, out);
  const bool adds = op.kind == OpKind::add || op.kind == OpKind::dropout_add;
  const Floats other = adds ? o.in_like(1, out) : Floats{};
  const std::int64_t count = o.elements_out(0);
  const Dropout dropout = op.kind == OpKind::add ? Dropout{} : dropout_of(b, op, op.inputs.back());
  if (dropout.active()) {
    return finish(o, [=](cudaStream_t stream) { launch_dropout(stream, x, other, out, count, dropout); });
  }
  if (adds) return finish(o, [=](cudaStream_t stream) { launch_add(stream, x, other, out, count); });
  // Nothing is dropped: the kernel copies.
  return finish(o, [=](cudaStream_t stream) { launch_dropout(stream, x, other, out, count, dropout); });
}

Outcome<Launch> bind_loss(Bindings& b, const Op& op) {
  Operands o(b, op);
  if (op.kind == OpKind::accumulate_loss) {
    const float* losses = o.statistics_in(0);
    float* loss = o.statistics_out(0);
    auto* nonfinite = o.integers_out<std::int32_t>(1);
    const std::int64_t rows = o.elements_in(0);
    const auto scale = static_cast<float>(op.floating("scale"));
    return finish(o, [=](cudaStream_t stream) {
      launch_accumulate_loss(stream, losses, loss, nonfinite, rows, scale);
    });
  }
  const Floats logits = o.in(0);
  const auto* targets = o.integers_in<std::int32_t>(1);
  const std::int64_t columns = o.columns_in(0);
  const std::int64_t rows = o.elements_in(0) / columns;
  const std::int64_t vocab = op.integer("vocab");
  if (op.kind == OpKind::cross_entropy) {
    float* losses = o.statistics_out(0);
    float* lse = o.statistics_out(1);
    return finish(o, [=](cudaStream_t stream) {
      launch_cross_entropy(stream, logits, targets, losses, lse, rows, columns, vocab);
    });
  }
  const float* lse = o.statistics_in(2);
  const Floats dlogits = o.out_like(0, logits);
  const auto scale = static_cast<float>(op.floating("scale"));
  return finish(o, [=](cudaStream_t stream) {
    launch_cross_entropy_backward(stream, logits, targets, lse, dlogits, rows, columns, vocab, scale);
  });
}

Outcome<Launch> bind_bias_backward(Bindings& b, const Op& op) {
  Operands o(b, op);
  const Floats dy = o.in(0);
  const Floats dbias = o.out(0);
  const std::int64_t columns = o.elements_in(1);
  const std::int64_t rows = o.elements_in(0) / columns;
  std::int64_t floats = 0;
  float* partial = o.scratch(1, columns, floats);
  unsigned* tickets = o.tickets(bias_backward_tickets(columns));
  return finish(o, [=](cudaStream_t stream) {
    launch_bias_backward(stream, dy, dbias, partial, floats, tickets, rows, columns);
  });
}

Outcome<Launch> bind_bookkeeping(Bindings& b, const Op& op) {
  Operands o(b, op);
  switch (op.kind) {
    case OpKind::load_micro_batch: {
      const plan::Dims& dims = b.plan->dims;
      const auto* batch = o.integers_in<std::int32_t>(0);
      const auto* index = o.integers_in<std::int64_t>(1);
      auto* tokens = o.integers_out<std::int32_t>(0);
      auto* targets = o.integers_out<std::int32_t>(1);
      return finish(o, [=, micro_batches = dims.micro_batches, sequences = dims.micro_batch,
                        seq = dims.seq_length](cudaStream_t stream) {
        launch_load_micro_batch(stream, batch, index, micro_batches, tokens, targets, sequences, seq);
      });
    }
    case OpKind::advance_micro_batch: {
      auto* index = o.integers_out<std::int64_t>(0);
      auto* counter = o.integers_out<std::uint64_t>(1);
      return finish(o, [=](cudaStream_t stream) { launch_advance_micro_batch(stream, index, counter); });
    }
    case OpKind::advance_step: {
      auto* step = o.integers_out<std::int64_t>(0);
      auto* index = o.integers_out<std::int64_t>(1);
      return finish(o, [=](cudaStream_t stream) { launch_advance_step(stream, step, index); });
    }
    default: {
      const Floats x = o.in(0);
      const std::int64_t count = o.elements_in(0);
      auto* nonfinite = o.integers_out<std::int32_t>(0);
      const int bit = static_cast<int>(op.integer("bit"));
      return finish(o, [=](cudaStream_t stream) { launch_check_finite(stream, x, count, nonfinite, bit); });
    }
  }
}

}  // namespace

Bindings::~Bindings() {
  for (void* table : tables) cudaFree(table);
  for (const Region& region : {product_workspace, attention_workspace}) {
    if (region.data != nullptr) cudaFree(region.data);
  }
}

Outcome<void*> Bindings::add_table(const void* host, std::size_t bytes) {
  void* table = nullptr;
  if (Status s = check(cudaMalloc(&table, bytes), "cudaMalloc"); !s.ok()) return s.error();
  tables.push_back(table);
  table_bytes += bytes;
  if (host != nullptr) {
    if (Status s = check(cudaMemcpy(table, host, bytes, cudaMemcpyHostToDevice), "cudaMemcpy"); !s.ok()) {
      return s.error();
    }
  }
  return table;
}

Bindings::Region Bindings::workspace_of(const Op& op, std::size_t index, const Region& otherwise) const {
  if (index >= op.outputs.size()) return otherwise;
  return {at(op.outputs[index]), static_cast<std::size_t>(plan->buffers[op.outputs[index]].bytes())};
}

Status Bindings::find_extra_workspaces() {
  for (const Op& op : plan->ops) {
    switch (op.kind) {
      case OpKind::gemm:
      case OpKind::gemm_add:
      case OpKind::gemm_gelu:
      case OpKind::gemm_gelu_backward:
      case OpKind::gemm_fp8:
      case OpKind::linear_cross_entropy: {
        const std::size_t own = op.kind == OpKind::gemm_gelu              ? 2
                                : op.kind == OpKind::linear_cross_entropy ? 4
                                                                          : 1;
        if (op.outputs.size() == own) product_workspace.bytes = plan::kProductWorkspaceBytes;
        break;
      }
      case OpKind::attention:
      case OpKind::attention_backward: {
        const Outcome<std::size_t> extra = extra_attention_bytes(*this, op);
        if (!extra.ok()) return extra.error();
        attention_workspace.bytes = std::max(attention_workspace.bytes, extra.value());
        break;
      }
      default:
        break;
    }
  }
  return {};
}

Status Bindings::allocate_extra_workspaces() {
  for (Region* region : {&product_workspace, &attention_workspace}) {
    if (region->bytes == 0) continue;
    if (Status s = check(cudaMalloc(&region->data, region->bytes), "cudaMalloc"); !s.ok()) return s;
  }
  return {};
}

Outcome<Floats> floats_of(const Bindings& bindings, const Op& op, BufferId id) {
  const Buffer& buffer = bindings.plan->buffers[id];
  if (buffer.dtype == plan::DType::f32) return Floats{bindings.at(id), Storage::f32};
  if (buffer.dtype == plan::DType::bf16) return Floats{bindings.at(id), Storage::bf16};
  return unsupported_op(
      op, "`" + buffer.name + "` is " + plan::dtype_name(buffer.dtype) + ", and only f32 and bf16 run");
}

Dropout dropout_of(const Bindings& bindings, const Op& op, BufferId counter) {
  Dropout dropout;
  dropout.seed = bindings.plan->seed;
  dropout.offset = static_cast<std::uint32_t>(op.integer("rng_offset"));
  dropout.p = op.floating("p");
  dropout.counter = pointer_of<std::uint64_t>(bindings, counter);
  return dropout;
}

Outcome<Launch> bind_op(Bindings& b, const Op& op) {
  switch (op.kind) {
    case OpKind::gemm:
    case OpKind::gemm_add:
    case OpKind::gemm_gelu:
    case OpKind::gemm_gelu_backward:
      return bind_gemm(b, op);
    case OpKind::gemm_fp8:
      return bind_gemm_fp8(b, op);
    case OpKind::quantize_fp8:
      return bind_quantize_fp8(b, op);
    case OpKind::linear_cross_entropy:
      return bind_linear_cross_entropy(b, op);
    case OpKind::attention:
    case OpKind::attention_backward:
      return bind_attention(b, op);
    case OpKind::adamw:
    case OpKind::grad_norm:
    case OpKind::zero:
    case OpKind::learning_rate:
      return bind_optimizer(b, op);
    case OpKind::embedding:
      return bind_embedding(b, op);
    case OpKind::embedding_backward:
      return bind_embedding_backward(b, op);
    case OpKind::rms_norm:
    case OpKind::layer_norm:
      return bind_norm(b, op);
    case OpKind::rms_norm_backward:
    case OpKind::layer_norm_backward:
      return bind_norm_backward(b, op);
    case OpKind::rope:
      return bind_rope(b, op);
    case OpKind::swiglu:
    case OpKind::swiglu_backward:
    case OpKind::gelu:
    case OpKind::gelu_backward:
      return bind_activation(b, op);
    case OpKind::dropout:
    case OpKind::dropout_add:
    case OpKind::dropout_backward:
    case OpKind::add:
      return bind_residual(b, op);
    case OpKind::cross_entropy:
    case OpKind::cross_entropy_backward:
    case OpKind::accumulate_loss:
      return bind_loss(b, op);
    case OpKind::bias_backward:
      return bind_bias_backward(b, op);
    case OpKind::load_micro_batch:
    case OpKind::advance_micro_batch:
    case OpKind::advance_step:
    case OpKind::check_finite:
      return bind_bookkeeping(b, op);
  }
  return unsupported_op(op, "the kind is unknown");
}

}  // namespace capstan::runtime::cuda
