#include <optional>
#include <utility>
#include <vector>

#include "compiler/plan/passes.h"

namespace capstan::plan {
namespace {

/// How many ops read and how many write each buffer.
struct Uses {
  explicit Uses(const Plan& plan) : reads(plan.buffers.size(), 0), writes(plan.buffers.size(), 0) {
    for (const Op& op : plan.ops) {
      for (const BufferId id : op.inputs) ++reads[id];
      for (const BufferId id : op.outputs) ++writes[id];
    }
  }
  bool is_private(BufferId id) const { return reads[id] == 1 && writes[id] == 1; }
  std::vector<int> reads, writes;
};

bool same_place(const Op& a, const Op& b) {
  return a.phase == b.phase && a.stage == b.stage && a.module == b.module && a.layer == b.layer;
}

/// The product's attributes without those that `names` lists.
std::vector<std::pair<std::string, AttributeValue>> keep_attributes(const Op& op,
                                                                    std::initializer_list<const char*> drop) {
  std::vector<std::pair<std::string, AttributeValue>> kept;
  for (const auto& attribute : op.attributes) {
    bool dropped = false;
    for (const char* name : drop) dropped = dropped || attribute.first == name;
    if (!dropped) kept.push_back(attribute);
  }
  return kept;
}

/// One op for a product and the op after it; nothing when they do not fit.
std::optional<Op> fuse_pair(const Plan& plan, const Uses& uses, const Op& product, const Op& next) {
  if (product.kind != OpKind::gemm || product.boolean("accumulate") || !same_place(product, next)) {
    return std::nullopt;
  }
  const BufferId result = product.outputs[0];
  const bool bias = product.text("epilogue") == "bias";
  Op fused = product;
  if (next.kind == OpKind::add) {
    const bool first = next.inputs[0] == result;
    if ((!first && next.inputs[1] != result) || next.inputs[0] == next.inputs[1] ||
        !uses.is_private(result)) {
      return std::nullopt;
    }
    fused.kind = OpKind::gemm_add;
    fused.attributes = keep_attributes(product, {"accumulate"});
    fused.inputs.push_back(next.inputs[first ? 1 : 0]);
    fused.outputs = next.outputs;
    return fused;
  }
  // The libraries' epilogues know the tanh form, in bf16, on rows of whole 16-byte groups.
  const auto suits_epilogue = [&](const Op& point) {
    return point.boolean("tanh") && plan.buffers[result].dtype == DType::bf16 &&
           product.integer("n") % 8 == 0;
  };
  if (next.kind == OpKind::gelu && next.inputs[0] == result && bias && suits_epilogue(next)) {
    fused.kind = OpKind::gemm_gelu;
    fused.attributes = keep_attributes(product, {"accumulate", "epilogue"});
    fused.outputs = {next.outputs[0], result};
    return fused;
  }
  if (next.kind == OpKind::gelu_backward && next.inputs[0] == result && !bias && uses.is_private(result) &&
      suits_epilogue(next)) {
    fused.kind = OpKind::gemm_gelu_backward;
    fused.attributes = keep_attributes(product, {"accumulate", "epilogue"});
    fused.inputs.push_back(next.inputs[1]);
    fused.outputs = next.outputs;
    return fused;
  }
  return std::nullopt;
}

}  // namespace

void pass_fuse(Plan& plan, const ModelSpec& spec, std::vector<Refusal>&) {
  // The host gains nothing from fewer passes over memory, and its plans stay easy to read.
  if (spec.backend != "cuda") return;
  const Uses uses(plan);
  std::vector<Op> ops;
  ops.reserve(plan.ops.size());
  for (std::size_t i = 0; i < plan.ops.size(); ++i) {
    std::optional<Op> fused;
    if (i + 1 < plan.ops.size()) fused = fuse_pair(plan, uses, plan.ops[i], plan.ops[i + 1]);
    Op op = fused ? std::move(*fused) : plan.ops[i];
    if (fused) ++i;
    op.id = static_cast<OpId>(ops.size());
    ops.push_back(std::move(op));
  }
  plan.ops = std::move(ops);
}

}  // namespace capstan::plan
