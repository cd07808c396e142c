#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {

void forward_residual(Lowering& lowering, BufferId branch, std::int64_t rng_offset, const std::string& name) {
  const double p = lowering.spec.hidden_dropout;
  const BufferId output = lowering.add_activation(name, lowering.spec.dims.hidden);
  if (p > 0) {
    lowering.builder.place.key = "model.hidden_dropout";
    lowering.builder.add_op(OpKind::dropout_add, {branch, lowering.stream, lowering.rng_counter}, {output},
                            {{"p", p}, {"rng_offset", rng_offset}});
    lowering.builder.place.key.clear();
  } else {
    lowering.builder.add_op(OpKind::add, {branch, lowering.stream}, {output});
  }
  lowering.stream = output;
}

BufferId backward_residual(Lowering& lowering, std::int64_t rng_offset, const std::string& name) {
  const double p = lowering.spec.hidden_dropout;
  if (p <= 0) return lowering.stream_gradient;
  const BufferId branch_gradient = lowering.add_activation(name, lowering.spec.dims.hidden);
  lowering.builder.place.key = "model.hidden_dropout";
  lowering.builder.add_op(OpKind::dropout_backward, {lowering.stream_gradient, lowering.rng_counter},
                          {branch_gradient}, {{"p", p}, {"rng_offset", rng_offset}});
  lowering.builder.place.key.clear();
  return branch_gradient;
}

}  // namespace capstan::plan
