#include <algorithm>

#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {
namespace {

/// The head's matrix: its own, or the word embedding's.
std::size_t head_weight(const Lowering& lowering) {
  return lowering.head ? lowering.head->weight : lowering.word_table;
}

/// Rows of logits that exist at once where the head's backward pass follows its forward pass row by row.
constexpr std::int64_t kChunkRows = 4096;

/// Plans for CUDA: product, loss and their backward pass in one op, which never holds all logits.
bool is_fused(const Lowering& lowering) {
  return lowering.spec.backend == "cuda";
}

void add_losses(Lowering& lowering, BufferId losses) {
  lowering.builder.add_op(OpKind::accumulate_loss, {losses, lowering.loss, lowering.nonfinite},
                          {lowering.loss, lowering.nonfinite}, {{"scale", lowering.loss_scale()}});
}

void add_fused_head(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const Parameter& weight = lowering.parameter(head_weight(lowering));
  const std::int64_t rows = std::min(kChunkRows, lowering.token_count());
  const BufferId losses =
      builder.add_buffer("losses", wide_dtype(spec), {lowering.token_count()}, Role::activation);
  lowering.head_input_gradient = lowering.add_activation("final_norm.out.grad", spec.dims.hidden);
  const BufferId logits =
      builder.add_buffer("logits.chunk", spec.param_dtype, {rows, spec.dims.padded_vocab}, Role::workspace);
  builder.add_op(OpKind::linear_cross_entropy,
                 {lowering.final_saved.output, weight.weight, lowering.targets, weight.gradient},
                 {losses, lowering.head_input_gradient, weight.gradient, logits},
                 {{"vocab", spec.dims.vocab}, {"scale", lowering.loss_scale()}, {"chunk_rows", rows}});
  add_losses(lowering, losses);
}

}  // namespace

void forward_head(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const DType wide = wide_dtype(spec);
  const std::vector<std::int64_t> per_token = {lowering.token_count()};
  builder.place = {Phase::forward, Stage::micro_batch, "final_norm", -1, ""};
  lowering.final_saved = forward_norm(lowering, lowering.final_norm, "final_norm");

  builder.place.module = "head";
  if (is_fused(lowering)) return add_fused_head(lowering);
  lowering.logits = lowering.add_activation("logits", spec.dims.padded_vocab);
  Gemm gemm{lowering.final_saved.output,
            lowering.parameter(head_weight(lowering)).weight,
            lowering.logits,
            lowering.token_count(),
            spec.dims.padded_vocab,
            spec.dims.hidden};
  gemm.transpose_b = true;
  add_gemm(lowering, gemm);
  const BufferId losses = builder.add_buffer("losses", wide, per_token, Role::activation);
  lowering.loss_lse = builder.add_buffer("losses.lse", wide, per_token, Role::activation);
  builder.add_op(OpKind::cross_entropy, {lowering.logits, lowering.targets}, {losses, lowering.loss_lse},
                 {{"vocab", spec.dims.vocab}});
  add_losses(lowering, losses);
}

void backward_head(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  const std::int64_t tokens = lowering.token_count();
  builder.place = {Phase::backward, Stage::micro_batch, "head", -1, ""};
  if (is_fused(lowering)) {
    builder.place.module = "final_norm";
    backward_norm(lowering, lowering.final_norm, lowering.final_saved, lowering.head_input_gradient,
                  "final_norm", true);
    return;
  }
  const BufferId dlogits = lowering.add_activation("logits.grad", spec.dims.padded_vocab);
  builder.add_op(OpKind::cross_entropy_backward, {lowering.logits, lowering.targets, lowering.loss_lse},
                 {dlogits}, {{"vocab", spec.dims.vocab}, {"scale", lowering.loss_scale()}});

  const Parameter& weight = lowering.parameter(head_weight(lowering));
  Gemm weight_gradient{dlogits,          lowering.final_saved.output,
                       weight.gradient,  spec.dims.padded_vocab,
                       spec.dims.hidden, tokens};
  weight_gradient.transpose_a = true;
  weight_gradient.accumulate = true;
  add_gemm(lowering, weight_gradient);
  const BufferId dnorm = lowering.add_activation("final_norm.out.grad", spec.dims.hidden);
  add_gemm(lowering, Gemm{dlogits, weight.weight, dnorm, tokens, spec.dims.hidden, spec.dims.padded_vocab});

  builder.place.module = "final_norm";
  backward_norm(lowering, lowering.final_norm, lowering.final_saved, dnorm, "final_norm", true);
}

}  // namespace capstan::plan
