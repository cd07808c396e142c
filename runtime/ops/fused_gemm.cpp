#include <vector>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

void set(plan::Op& op, const char* name, plan::AttributeValue value) {
  for (auto& [key, old] : op.attributes) {
    if (key == name) {
      old = std::move(value);
      return;
    }
  }
  op.attributes.emplace_back(name, std::move(value));
}

/// The product and the point-wise op of `kind` on it, as two ops with the product between them in the type
/// that sums run in: that is what rounding once means.
template <typename C>
void run_fused(const OpCall& call, plan::OpKind kind) {
  const bool adds = kind == plan::OpKind::add, forward = kind == plan::OpKind::gelu;
  const Operand& out = call.outputs[0];
  std::vector<C> unrounded(static_cast<std::size_t>(out.elements));
  Operand between = out;
  between.data = reinterpret_cast<std::byte*>(unrounded.data());
  between.dtype = sizeof(C) == 8 ? plan::DType::f64 : plan::DType::f32;

  plan::Op product_op = *call.op;
  product_op.kind = plan::OpKind::gemm;
  set(product_op, "accumulate", false);
  if (!adds) set(product_op, "epilogue", std::string(forward ? "bias" : "none"));
  OpCall product = call;
  product.op = &product_op;
  if (!forward) product.inputs.pop_back();
  product.outputs = {between};
  gemm(product);

  plan::Op point_op = *call.op;
  point_op.kind = kind;
  set(point_op, "tanh", true);
  OpCall point = call;
  point.op = &point_op;
  point.inputs = {between};
  if (!forward) point.inputs.push_back(call.inputs.back());
  point.outputs = {out};
  if (adds) return add(point);
  if (!forward) return gelu_backward(point);
  gelu(point);
  store(call.outputs[1], 0, out.elements, unrounded.data());
}

}  // namespace

void gemm_add(const OpCall& call) {
  in_compute_type(call, [&](auto type) { run_fused<decltype(type)>(call, plan::OpKind::add); });
}
void gemm_gelu(const OpCall& call) {
  in_compute_type(call, [&](auto type) { run_fused<decltype(type)>(call, plan::OpKind::gelu); });
}
void gemm_gelu_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { run_fused<decltype(type)>(call, plan::OpKind::gelu_backward); });
}

}  // namespace capstan::runtime::host
