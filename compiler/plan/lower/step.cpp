#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

void begin_step(Lowering& lowering) {
  lowering.builder.place = {Phase::bookkeeping, Stage::step_begin, "step", -1, ""};
  std::vector<BufferId> cleared;
  for (const Parameter& parameter : lowering.parameters) cleared.push_back(parameter.gradient);
  cleared.insert(cleared.end(), {lowering.loss, lowering.nonfinite});
  lowering.builder.add_op(OpKind::zero, {}, std::move(cleared));
}

void end_micro_batch(Lowering& lowering) {
  lowering.builder.place = {Phase::bookkeeping, Stage::micro_batch, "step", -1, ""};
  lowering.builder.add_op(OpKind::advance_micro_batch, {lowering.micro_batch_index, lowering.rng_counter},
                          {lowering.micro_batch_index, lowering.rng_counter});
}

void end_step(Lowering& lowering) {
  lowering.builder.place = {Phase::bookkeeping, Stage::step_end, "step", -1, ""};
  lowering.builder.add_op(OpKind::advance_step, {lowering.step, lowering.micro_batch_index},
                          {lowering.step, lowering.micro_batch_index});
}

}  // namespace capstan::plan
