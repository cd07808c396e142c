#include "compiler/plan/lower/lowering.h"

namespace capstan::plan {
namespace {

void add_adamw(Lowering& lowering, bool decays) {
  const OptimizerSpec& optimizer = lowering.spec.optimizer;
  std::vector<BufferId> inputs = {lowering.learning_rate, lowering.step, lowering.grad_norm,
                                  lowering.nonfinite};
  std::vector<BufferId> outputs;
  for (const Parameter& parameter : lowering.parameters) {
    if (parameter.decays != decays) continue;
    inputs.insert(inputs.end(), {parameter.weight, parameter.gradient, parameter.moment1, parameter.moment2});
    outputs.insert(outputs.end(), {parameter.weight, parameter.moment1, parameter.moment2});
    if (parameter.master) {
      inputs.push_back(*parameter.master);
      outputs.push_back(*parameter.master);
    }
  }
  if (outputs.empty()) return;
  lowering.builder.add_op(OpKind::adamw, std::move(inputs), std::move(outputs),
                          {{"beta1", optimizer.beta1},
                           {"beta2", optimizer.beta2},
                           {"eps", optimizer.eps},
                           {"weight_decay", decays ? optimizer.weight_decay : 0.0},
                           {"clip_grad", optimizer.clip_grad},
                           {"has_master", lowering.spec.has_masters}});
}

}  // namespace

void update_parameters(Lowering& lowering) {
  const OptimizerSpec& optimizer = lowering.spec.optimizer;
  PlanBuilder& builder = lowering.builder;
  builder.place = {Phase::optimizer, Stage::step_end, "optimizer", -1, ""};

  std::vector<BufferId> gradients;
  for (const Parameter& parameter : lowering.parameters) gradients.push_back(parameter.gradient);
  gradients.push_back(lowering.nonfinite);
  const BufferId partial =
      builder.add_buffer("grad_norm.partial", wide_dtype(lowering.spec), {1024}, Role::workspace);
  builder.place.key = "optimizer.clip_grad";
  builder.add_op(OpKind::grad_norm, std::move(gradients), {lowering.grad_norm, lowering.nonfinite, partial});
  builder.place.key = "scheduler.lr_decay_style";
  builder.add_op(OpKind::learning_rate, {lowering.step}, {lowering.learning_rate},
                 {{"style", optimizer.decay_style},
                  {"max_lr", optimizer.max_lr},
                  {"min_lr", optimizer.min_lr},
                  {"init_lr", optimizer.init_lr},
                  {"warmup_steps", optimizer.warmup_steps},
                  {"decay_steps", optimizer.decay_steps},
                  {"unit", optimizer.sample_fraction}});
  builder.place.key = "optimizer.optimizer";
  add_adamw(lowering, true);
  add_adamw(lowering, false);
}

}  // namespace capstan::plan
