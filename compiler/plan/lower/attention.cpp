#include <cmath>

#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {
namespace {

Attributes rope_attributes(const ModelSpec& spec, bool inverse) {
  const Dims& dims = spec.dims;
  return {{"heads", dims.heads},
          {"kv_heads", dims.kv_heads},
          {"head_dim", dims.head_dim},
          {"rotary_dim", spec.rotary_dim},
          {"base", spec.rotary_base},
          {"seq_length", dims.seq_length},
          {"interleaved", spec.rotary_interleaved},
          {"inverse", inverse}};
}

Attributes attention_attributes(const ModelSpec& spec, std::int64_t layer) {
  const Dims& dims = spec.dims;
  return {{"batch", dims.micro_batch},
          {"seq_length", dims.seq_length},
          {"heads", dims.heads},
          {"kv_heads", dims.kv_heads},
          {"head_dim", dims.head_dim},
          {"scale", 1.0 / std::sqrt(static_cast<double>(dims.head_dim))},
          {"causal", true},
          {"p", spec.attention_dropout},
          {"rng_offset", rng_site::attention(layer)}};
}

}  // namespace

void forward_attention(Lowering& lowering, std::int64_t layer) {
  const ModelSpec& spec = lowering.spec;
  const Dims& dims = spec.dims;
  PlanBuilder& builder = lowering.builder;
  const std::string name = layer_name(layer, "attn");
  AttentionBlock& block = lowering.attention[static_cast<std::size_t>(layer)];
  builder.place = {Phase::forward, Stage::micro_batch, "attn", static_cast<std::int32_t>(layer), ""};

  block.saved = forward_norm(lowering, block.norm, name + ".norm");
  block.qkv_out = forward_linear(lowering, block.qkv, block.saved.output, name + ".qkv");
  if (spec.positions == Positions::rope) {
    builder.add_op(OpKind::rope, {block.qkv_out}, {block.qkv_out}, rope_attributes(spec, false));
  }
  block.core_out = lowering.add_activation(name + ".core", dims.heads * dims.head_dim);
  block.lse = builder.add_buffer(name + ".lse", wide_dtype(spec),
                                 {dims.micro_batch, dims.heads, dims.seq_length}, Role::activation);
  builder.add_op(OpKind::attention, {block.qkv_out, lowering.rng_counter}, {block.core_out, block.lse},
                 attention_attributes(spec, layer));
  const BufferId projected = forward_linear(lowering, block.projection, block.core_out, name + ".proj");
  forward_residual(lowering, projected, rng_site::attention_residual(layer), name + ".out");
}

void backward_attention(Lowering& lowering, std::int64_t layer) {
  const ModelSpec& spec = lowering.spec;
  const Dims& dims = spec.dims;
  PlanBuilder& builder = lowering.builder;
  const std::string name = layer_name(layer, "attn");
  const AttentionBlock& block = lowering.attention[static_cast<std::size_t>(layer)];
  builder.place = {Phase::backward, Stage::micro_batch, "attn", static_cast<std::int32_t>(layer), ""};
  const DType wide = wide_dtype(spec);
  const std::int64_t qkv_width = (dims.heads + 2 * dims.kv_heads) * dims.head_dim;

  const BufferId dprojected =
      backward_residual(lowering, rng_site::attention_residual(layer), name + ".proj.grad");
  const BufferId dcore = lowering.add_activation(name + ".core.grad", dims.heads * dims.head_dim);
  backward_linear(lowering, block.projection, block.core_out, dprojected, dcore);

  const BufferId dqkv = lowering.add_activation(name + ".qkv.grad", qkv_width);
  const BufferId delta = builder.add_buffer(name + ".delta", wide,
                                            {dims.micro_batch, dims.heads, dims.seq_length}, Role::workspace);
  const BufferId sums =
      builder.add_buffer(name + ".core.sums", wide, {lowering.token_count(), qkv_width}, Role::workspace);
  builder.add_op(OpKind::attention_backward,
                 {dcore, block.qkv_out, block.core_out, block.lse, lowering.rng_counter}, {dqkv, delta, sums},
                 attention_attributes(spec, layer));
  if (spec.positions == Positions::rope) {
    builder.add_op(OpKind::rope, {dqkv}, {dqkv}, rope_attributes(spec, true));
  }
  const BufferId dnorm = lowering.add_activation(name + ".norm.out.grad", dims.hidden);
  backward_linear(lowering, block.qkv, block.saved.output, dqkv, dnorm);
  backward_norm(lowering, block.norm, block.saved, dnorm, name + ".norm", false);
}

}  // namespace capstan::plan
