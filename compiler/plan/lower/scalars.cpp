#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

void declare_scalars(Lowering& lowering) {
  PlanBuilder& builder = lowering.builder;
  const Dims& dims = lowering.spec.dims;
  const Init zeros{Init::Kind::zeros, 0, 0};
  const DType wide = wide_dtype(lowering.spec);
  lowering.batch_tokens =
      builder.add_buffer(names::kBatchTokens, DType::i32,
                         {dims.micro_batches, dims.micro_batch, dims.seq_length + 1}, Role::input);
  lowering.step = builder.add_buffer(names::kStep, DType::i64, {1}, Role::scalar, zeros);
  lowering.micro_batch_index =
      builder.add_buffer(names::kMicroBatchIndex, DType::i64, {1}, Role::scalar, zeros);
  lowering.rng_counter = builder.add_buffer(names::kRngCounter, DType::u64, {1}, Role::scalar, zeros);
  lowering.learning_rate = builder.add_buffer(names::kLearningRate, wide, {1}, Role::scalar, zeros);
  lowering.loss = builder.add_buffer(names::kLoss, wide, {1}, Role::scalar, zeros);
  lowering.grad_norm = builder.add_buffer(names::kGradNorm, wide, {1}, Role::scalar, zeros);
  lowering.nonfinite = builder.add_buffer(names::kNonfinite, DType::i32, {1}, Role::scalar, zeros);
  lowering.tokens =
      builder.add_buffer(names::kTokens, DType::i32, {dims.micro_batch, dims.seq_length}, Role::activation);
  lowering.targets =
      builder.add_buffer(names::kTargets, DType::i32, {dims.micro_batch, dims.seq_length}, Role::activation);
}

}  // namespace capstan::plan
