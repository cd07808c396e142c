#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

void forward_embedding(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  builder.place = {Phase::forward, Stage::micro_batch, "embedding", -1, ""};
  builder.add_op(OpKind::load_micro_batch, {lowering.batch_tokens, lowering.micro_batch_index},
                 {lowering.tokens, lowering.targets});

  lowering.stream = lowering.add_activation("embedding.out", spec.dims.hidden);
  std::vector<BufferId> inputs = {lowering.tokens, lowering.parameter(lowering.word_table).weight};
  if (lowering.position_table) inputs.push_back(lowering.parameter(*lowering.position_table).weight);
  builder.add_op(OpKind::embedding, std::move(inputs), {lowering.stream});

  if (spec.hidden_dropout > 0) {
    const BufferId dropped = lowering.add_activation("embedding.dropped", spec.dims.hidden);
    builder.place.key = "model.hidden_dropout";
    builder.add_op(OpKind::dropout, {lowering.stream, lowering.rng_counter}, {dropped},
                   {{"p", spec.hidden_dropout}, {"rng_offset", rng_site::embedding()}});
    lowering.stream = dropped;
  }
}

void backward_embedding(Lowering& lowering) {
  const ModelSpec& spec = lowering.spec;
  PlanBuilder& builder = lowering.builder;
  builder.place = {Phase::backward, Stage::micro_batch, "embedding", -1, ""};
  const BufferId dx = backward_residual(lowering, rng_site::embedding(), "embedding.out.grad");
  const BufferId dtable = lowering.parameter(lowering.word_table).gradient;
  std::vector<BufferId> inputs = {dx, lowering.tokens, dtable}, outputs = {dtable};
  if (lowering.position_table) {
    const BufferId dposition = lowering.parameter(*lowering.position_table).gradient;
    inputs.push_back(dposition);
    outputs.push_back(dposition);
  }
  outputs.push_back(builder.add_buffer("embedding.order", DType::i32,
                                       {4 * lowering.token_count() + 2 * spec.dims.padded_vocab + 2},
                                       Role::workspace));
  builder.add_op(OpKind::embedding_backward, std::move(inputs), std::move(outputs));
}

}  // namespace capstan::plan
