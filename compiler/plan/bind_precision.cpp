#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/binding.h"

namespace capstan::plan {
namespace {

bool has_section(const EffectiveConfig& config, std::string_view section) {
  const std::string prefix = std::string(section) + ".";
  const auto first = config.config().settings.lower_bound(prefix);
  return first != config.config().settings.end() && first->first.compare(0, prefix.size(), prefix) == 0;
}

/// Megatron Bridge's recipe names ("bf16_mixed", "bf16-mixed", "bf16").
bool is_bf16_recipe(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name == "bf16" || name == "bf16_mixed";
}

}  // namespace

void bind_precision(EffectiveConfig& config, ModelSpec& spec) {
  bool bf16 = config.boolean("model.bf16", false);
  bool fp16 = config.boolean("model.fp16", false);
  const char* fp16_key = "model.fp16";
  bool wide_gradients = config.boolean("ddp.grad_reduce_in_fp32", false);

  if (has_section(config, "mixed_precision")) {
    // Bridge writes the recipe's fields over those of model, optimizer and ddp (mixed_precision.py, setup).
    const std::string recipe = config.text("mixed_precision.recipe", "");
    bf16 = config.boolean("mixed_precision.bf16", false) || is_bf16_recipe(recipe);
    fp16 = config.boolean("mixed_precision.fp16", false);
    fp16_key = "mixed_precision.fp16";
    wide_gradients = config.boolean("mixed_precision.grad_reduce_in_fp32", true);
    const bool fp32 = config.boolean("mixed_precision.fp32", false);
    if (fp32 && bf16)
      config.problem("PL003", "mixed_precision.fp32", "the config asks for fp32 and bf16 at once");
    if (!recipe.empty() && !is_bf16_recipe(recipe) && recipe != "fp32") {
      config.problem("PL001", "mixed_precision.recipe",
                     fmt::format("the runtime has no precision recipe `{}`", recipe),
                     "use `bf16_mixed`, or leave the section out for fp32");
    }
  }
  if (fp16) {
    config.problem("PL001", fp16_key, "the runtime has no fp16 with loss scaling", "use bf16 or fp32");
  }
  const std::string storage = config.text("model.params_dtype", "fp32");
  for (const char* key : {"optimizer.bf16", "optimizer.params_dtype", "mixed_precision.params_dtype",
                          "mixed_precision.pipeline_dtype", "model.pipeline_dtype"}) {
    config.note_used(key);
  }
  spec.param_dtype = bf16 ? DType::bf16 : DType::f32;
  if (!bf16 && (storage == "bf16" || storage == "bfloat16" || storage == "torch.bfloat16")) {
    config.problem("PL001", "model.params_dtype", "the runtime stores bf16 parameters in bf16 training only",
                   "set `model.bf16 = true` or `mixed_precision.bf16 = true`");
  }
  spec.has_masters = bf16;
  spec.grad_dtype = bf16 && !wide_gradients ? DType::bf16 : DType::f32;
}

}  // namespace capstan::plan
