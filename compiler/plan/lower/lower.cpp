#include "compiler/plan/lower/lower.h"

#include "compiler/plan/lower/lowering.h"
#include "compiler/plan/model_flops.h"

namespace capstan::plan {

std::string layer_name(std::int64_t layer, const char* module) {
  return "layer." + std::to_string(layer) + "." + module;
}

Plan lower(const ModelSpec& spec) {
  Plan plan;
  plan.producer = spec.producer;
  plan.config_name = spec.config_name;
  plan.config_digest = spec.config_digest;
  plan.backend = spec.backend;
  plan.deterministic = spec.deterministic;
  plan.dims = spec.dims;
  plan.schedule = spec.schedule;
  plan.data = spec.data;
  plan.seed = spec.seed;
  plan.model_flops_per_step = model_flops_per_step(spec);

  Lowering lowering(plan, spec);
  declare_scalars(lowering);
  declare_parameters(lowering);

  const std::int64_t layers = spec.dims.layers;
  begin_step(lowering);
  forward_embedding(lowering);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    forward_attention(lowering, layer);
    forward_mlp(lowering, layer);
  }
  forward_head(lowering);
  backward_head(lowering);
  for (std::int64_t layer = layers - 1; layer >= 0; --layer) {
    backward_mlp(lowering, layer);
    backward_attention(lowering, layer);
  }
  backward_embedding(lowering);
  end_micro_batch(lowering);
  update_parameters(lowering);
  end_step(lowering);

  if (spec.check_loss) {
    plan.checks.push_back(
        {"nonfinite_loss", lowering.nonfinite, "rerun_state_machine.check_for_nan_in_loss", true});
  }
  if (spec.check_gradients) {
    plan.checks.push_back({"nonfinite_gradient", lowering.nonfinite, "ddp.check_for_nan_in_grad", true});
  }
  // Graphs hold references to library workspaces, streams and arena; whatever is referenced goes last.
  plan.teardown = {"graphs", "libraries", "streams", "arena"};
  return plan;
}

}  // namespace capstan::plan
