#include <sstream>

#include "runtime/device/cuda_error.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime::cuda {
namespace {

using plan::Op;
using plan::OpKind;

/// Output of attention_backward that is for the library.
constexpr std::size_t kLibraryWorkspace = 3;
/// Largest head that any attention kernel here takes.
constexpr std::int64_t kMostHeadDim = 256;

Outcome<Attention> forward_of(const Bindings& b, const Op& op, plan::BufferId qkv, plan::BufferId out,
                              plan::BufferId lse, plan::BufferId counter) {
  Attention attention;
  Outcome<Floats> packed = floats_of(b, op, qkv);
  if (!packed.ok()) return packed.error();
  Outcome<Floats> result = floats_of(b, op, out);
  if (!result.ok()) return result.error();
  if (packed.value().storage != result.value().storage)
    return unsupported_op(op, "its operands have different dtypes");
  if (b.plan->buffers[lse].dtype != plan::DType::f32) return unsupported_op(op, "its log-sum-exp is not f32");
  attention.qkv = packed.value();
  attention.out = result.value();
  attention.lse = pointer_of<float>(b, lse);
  attention.batch = op.integer("batch");
  attention.seq_length = op.integer("seq_length");
  attention.heads = op.integer("heads");
  attention.kv_heads = op.integer("kv_heads");
  attention.head_dim = op.integer("head_dim");
  attention.scale = static_cast<float>(op.floating("scale"));
  attention.causal = op.boolean("causal");
  attention.dropout = dropout_of(b, op, counter);
  if (attention.head_dim > kMostHeadDim) {
    return unsupported_op(op,
                          "`head_dim` is " + std::to_string(attention.head_dim) + ", and at most 256 runs");
  }
  return attention;
}

/// cuDNN's attention for this shape, made at its first use; null when cuDNN is not for it.
CudnnAttention* cudnn_attention(Bindings& b, const Attention& a, bool backward) {
  if (b.cudnn == nullptr || a.qkv.storage != Storage::bf16 || a.dropout.active()) return nullptr;
  std::ostringstream key;
  key << (backward ? "backward " : "forward ") << a.batch << ' ' << a.seq_length << ' ' << a.heads << ' '
      << a.kv_heads << ' ' << a.head_dim << ' ' << a.scale << ' ' << a.causal;
  auto [place, is_new] = b.attentions.try_emplace(key.str());
  if (is_new) {
    std::string why;
    place->second = CudnnAttention::build(b.cudnn, a, backward, b.plan->deterministic, why);
  }
  return place->second.get();
}

Outcome<Launch> bind_forward(Bindings& b, const Op& op) {
  Outcome<Attention> resolved = forward_of(b, op, op.inputs[0], op.outputs[0], op.outputs[1], op.inputs[1]);
  if (!resolved.ok()) return resolved.error();
  const Attention attention = resolved.value();
  if (CudnnAttention* fused = cudnn_attention(b, attention, false); fused != nullptr) {
    return Launch([fused, attention, workspace = b.attention_workspace.data](cudaStream_t stream) {
      return fused->forward(stream, attention, workspace);
    });
  }
  const bool tensor_core = attention_tensor_core_supports(attention);
  return Launch([attention, tensor_core](cudaStream_t stream) {
    tensor_core ? launch_attention_tensor_core(stream, attention) : launch_attention_plain(stream, attention);
    return Status();
  });
}

Outcome<Launch> bind_backward(Bindings& b, const Op& op) {
  Outcome<Attention> resolved = forward_of(b, op, op.inputs[1], op.inputs[2], op.inputs[3], op.inputs[4]);
  if (!resolved.ok()) return resolved.error();
  AttentionBackward backward;
  backward.forward = resolved.value();
  Outcome<Floats> dout = floats_of(b, op, op.inputs[0]);
  if (!dout.ok()) return dout.error();
  Outcome<Floats> dqkv = floats_of(b, op, op.outputs[0]);
  if (!dqkv.ok()) return dqkv.error();
  if (dout.value().storage != backward.forward.qkv.storage || dqkv.value().storage != dout.value().storage) {
    return unsupported_op(op, "its operands have different dtypes");
  }
  backward.dout = dout.value();
  backward.dqkv = dqkv.value();
  backward.delta = pointer_of<float>(b, op.outputs[1]);
  if (CudnnAttention* fused = cudnn_attention(b, backward.forward, true); fused != nullptr) {
    const bool has_sums = op.outputs.size() > 2;
    const std::size_t room =
        has_sums ? static_cast<std::size_t>(b.plan->buffers[op.outputs[2]].bytes() / sizeof(float)) : 0;
    if (fused->sum_floats() <= room) {
      float* sums = has_sums ? pointer_of<float>(b, op.outputs[2]) : nullptr;
      Bindings::Region workspace = b.workspace_of(op, kLibraryWorkspace, b.attention_workspace);
      if (workspace.bytes < fused->workspace_bytes()) workspace = b.attention_workspace;
      return Launch([fused, backward, sums, workspace](cudaStream_t stream) {
        return fused->backward(stream, backward, sums, workspace.data);
      });
    }
  }
  const bool tensor_core = attention_tensor_core_supports(backward.forward);
  return Launch([backward, tensor_core](cudaStream_t stream) {
    tensor_core ? launch_attention_backward_tensor_core(stream, backward)
                : launch_attention_backward_plain(stream, backward);
    return Status();
  });
}

}  // namespace

Outcome<std::size_t> extra_attention_bytes(Bindings& b, const Op& op) {
  const bool backward = op.kind == OpKind::attention_backward;
  Outcome<Attention> shape =
      backward ? forward_of(b, op, op.inputs[1], op.inputs[2], op.inputs[3], op.inputs[4])
               : forward_of(b, op, op.inputs[0], op.outputs[0], op.outputs[1], op.inputs[1]);
  if (!shape.ok()) return shape.error();
  const CudnnAttention* fused = cudnn_attention(b, shape.value(), backward);
  if (fused == nullptr) return std::size_t{0};
  const std::size_t given = backward ? b.workspace_of(op, kLibraryWorkspace, {}).bytes : 0;
  return fused->workspace_bytes() > given ? fused->workspace_bytes() : std::size_t{0};
}

Outcome<Launch> bind_attention(Bindings& b, const Op& op) {
  return op.kind == OpKind::attention ? bind_forward(b, op) : bind_backward(b, op);
}

}  // namespace capstan::runtime::cuda
