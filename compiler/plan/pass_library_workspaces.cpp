#include <string>
#include <utility>

#include "compiler/plan/passes.h"

namespace capstan::plan {
namespace {

/// cuDNN 9's attention pads its rows to whole tiles and keeps a few words besides.
constexpr std::int64_t kTileRows = 128, kStateBytes = 256;
/// The widest head whose attention the library takes.
constexpr std::int64_t kWidestHead = 128;

void add_workspace(Plan& plan, Op& op, const char* what, std::int64_t bytes) {
  Buffer buffer;
  buffer.id = static_cast<BufferId>(plan.buffers.size());
  buffer.name = std::string(what) + "." + std::to_string(op.id) + ".workspace";
  buffer.dtype = DType::u8;
  buffer.shape = {bytes};
  buffer.role = Role::workspace;
  op.outputs.push_back(buffer.id);
  plan.buffers.push_back(std::move(buffer));
}

/// Without atomic sums the library keeps the gradient of the scores in bf16, and, where query heads share key
/// heads, the gradients of keys and values for each query head.
std::int64_t attention_bytes(const Op& op) {
  const std::int64_t batch = op.integer("batch"), heads = op.integer("heads"),
                     length = op.integer("seq_length");
  const std::int64_t rows = (length + kTileRows - 1) / kTileRows * kTileRows;
  const std::int64_t scores = batch * heads * rows * rows * 2;
  const bool shared = op.integer("kv_heads") != heads;
  return scores + (shared ? 2 * batch * heads * rows * op.integer("head_dim") * 2 : 0) + kStateBytes;
}

}  // namespace

void pass_library_workspaces(Plan& plan, const ModelSpec& spec, std::vector<Refusal>&) {
  if (spec.backend != "cuda") return;
  for (Op& op : plan.ops) {
    switch (op.kind) {
      case OpKind::gemm:
      case OpKind::gemm_add:
      case OpKind::gemm_gelu:
      case OpKind::gemm_gelu_backward:
      case OpKind::gemm_fp8:
      case OpKind::linear_cross_entropy:
        add_workspace(plan, op, "product", kProductWorkspaceBytes);
        break;
      case OpKind::attention_backward: {
        const bool by_library = plan.deterministic && op.floating("p") == 0 &&
                                op.integer("head_dim") <= kWidestHead &&
                                plan.buffers[op.outputs[0]].dtype == DType::bf16;
        if (by_library) add_workspace(plan, op, "attention", attention_bytes(op));
        break;
      }
      default:
        break;
    }
  }
}

}  // namespace capstan::plan
