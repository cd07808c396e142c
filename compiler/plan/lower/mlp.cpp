#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

void forward_mlp(Lowering& lowering, std::int64_t layer) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const std::string name = layer_name(layer, "mlp");
  MlpBlock& block = lowering.mlp[static_cast<std::size_t>(layer)];
  builder.place = {Phase::forward, Stage::micro_batch, "mlp", static_cast<std::int32_t>(layer), ""};

  block.saved = forward_norm(lowering, block.norm, name + ".norm");
  block.fc1_out = forward_linear(lowering, block.fc1, block.saved.output, name + ".fc1");
  block.activated = lowering.add_activation(name + ".act", spec.dims.ffn_hidden);
  if (spec.activation == Activation::swiglu) {
    builder.add_op(OpKind::swiglu, {block.fc1_out}, {block.activated});
  } else {
    builder.add_op(OpKind::gelu, {block.fc1_out}, {block.activated},
                   {{"tanh", spec.activation == Activation::gelu_tanh}});
  }
  const BufferId branch = forward_linear(lowering, block.fc2, block.activated, name + ".fc2");
  forward_residual(lowering, branch, rng_site::mlp_residual(layer), name + ".out");
}

void backward_mlp(Lowering& lowering, std::int64_t layer) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const std::string name = layer_name(layer, "mlp");
  const MlpBlock& block = lowering.mlp[static_cast<std::size_t>(layer)];
  builder.place = {Phase::backward, Stage::micro_batch, "mlp", static_cast<std::int32_t>(layer), ""};

  const BufferId dbranch = backward_residual(lowering, rng_site::mlp_residual(layer), name + ".fc2.grad");
  const BufferId dactivated = lowering.add_activation(name + ".act.grad", spec.dims.ffn_hidden);
  backward_linear(lowering, block.fc2, block.activated, dbranch, dactivated);

  const BufferId dfc1 = lowering.add_activation(name + ".fc1.grad", block.fc1.out);
  if (spec.activation == Activation::swiglu) {
    builder.add_op(OpKind::swiglu_backward, {dactivated, block.fc1_out}, {dfc1});
  } else {
    builder.add_op(OpKind::gelu_backward, {dactivated, block.fc1_out}, {dfc1},
                   {{"tanh", spec.activation == Activation::gelu_tanh}});
  }
  const BufferId dnorm = lowering.add_activation(name + ".norm.out.grad", spec.dims.hidden);
  backward_linear(lowering, block.fc1, block.saved.output, dfc1, dnorm);
  backward_norm(lowering, block.norm, block.saved, dnorm, name + ".norm", false);
}

}  // namespace capstan::plan
