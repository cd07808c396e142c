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
bool is_fp8_recipe(std::string name) {
  std::replace(name.begin(), name.end(), '-', '_');
  return name == "bf16_with_fp8_current_scaling_mixed";
}

/// `section` is where the framework looks: the recipe's section where there is one, else the model's.
void bind_fp8(EffectiveConfig& config, ModelSpec& spec, const std::string& section, bool by_recipe,
              bool bf16) {
  const std::string format_key = section + ".fp8", recipe_key = section + ".fp8_recipe";
  std::string format = config.text(format_key, "");
  std::string scaling = config.text(recipe_key, section == "model" ? "delayed" : "tensorwise");
  const std::string wide_key = section + ".first_last_layers_bf16";
  bool keeps_wide = config.boolean(wide_key, false);
  // Bridge's recipe is a preset: what the config states beside it counts.
  if (by_recipe && !config.is_set(format_key)) format = "hybrid";
  if (by_recipe && !config.is_set(recipe_key)) scaling = "tensorwise";
  if (by_recipe && !config.is_set(wide_key)) keeps_wide = true;
  const std::int64_t layers = spec.dims.layers;
  const auto wide_layers = [&](const char* name) {
    const std::string key = section + name;
    const std::int64_t stated = config.integer(key, 0, std::int64_t{1} << 20, 1);
    return by_recipe && !config.is_set(key) ? std::int64_t{1} : stated;
  };
  const std::int64_t at_start = wide_layers(".num_layers_at_start_in_bf16");
  const std::int64_t at_end = wide_layers(".num_layers_at_end_in_bf16");
  const bool wide_weight_gradients = !config.boolean(section + ".fp8_wgrad", true);
  if (format.empty()) return;
  if (format != "hybrid" && format != "e4m3") {
    config.problem("LW003", format_key, fmt::format("`{} = \"{}\"` is no fp8 format", format_key, format),
                   "use `hybrid` or `e4m3`");
    return;
  }
  if (!bf16) {
    config.problem("LW001", format_key, "the runtime has fp8 products in bf16 training only",
                   "train in bf16, or leave fp8 out");
  }
  if (scaling != "tensorwise") {
    config.problem("LW001", config.is_set(recipe_key) ? recipe_key : format_key,
                   fmt::format("the runtime has fp8 with current scaling only, not `{}`", scaling),
                   fmt::format("set `{} = \"tensorwise\"`", recipe_key));
  }
  if (wide_weight_gradients) {
    config.problem("LW001", section + ".fp8_wgrad",
                   "the runtime has no weight gradients in bf16 beside fp8 products", "leave the key out");
  }
  spec.fp8 = format == "hybrid" ? ModelSpec::Fp8::hybrid : ModelSpec::Fp8::e4m3;
  if (!keeps_wide) return;
  spec.wide_layers_at_start = std::min(at_start, layers);
  spec.wide_layers_at_end = std::min(at_end, layers - spec.wide_layers_at_start);
}

/// `key` must ask for the type that parameters have anyway. In bf16 training that may be fp32, the default:
/// the framework casts the parameters when it wraps the model (Megatron-LM, transformer/module.py,
/// Float16Module).
void check_parameter_type(EffectiveConfig& config, const char* key, bool bf16, bool fp16) {
  const std::string type = config.text(key, "fp32");
  if (!config.is_set(key) || type == "fp32" || (bf16 && type == "bf16")) return;
  if (fp16 && type == "fp16") return;  // fp16 training is refused as such
  if (type == "bf16") {
    config.problem("LW001", key, "the runtime stores bf16 parameters in bf16 training only",
                   "set `model.bf16 = true` or `mixed_precision.bf16 = true`");
    return;
  }
  config.problem("LW001", key,
                 fmt::format("`{} = {}`: Capstan's runtime stores parameters in bf16 or fp32 only", key,
                             to_text(Value(type))),
                 fmt::format("for a run by Capstan, leave the key out, or set `{} = \"{}\"`", key,
                             bf16 ? "bf16" : "fp32"));
}

/// Bridge copies the section's type over those of model and optimizer.
void bind_parameter_types(EffectiveConfig& config, bool bf16, bool fp16) {
  const bool by_section = !config.value("mixed_precision.params_dtype").is_none();
  config.note_used("model.params_dtype");
  check_parameter_type(config, by_section ? "mixed_precision.params_dtype" : "model.params_dtype", bf16,
                       fp16);
  if (has_section(config, "mixed_precision")) return;
  check_parameter_type(config, "optimizer.params_dtype", bf16, fp16);
}

/// A recipe section writes its own over it (mixed_precision.py, setup).
void check_optimizer_precision(EffectiveConfig& config, bool bf16) {
  const bool of_optimizer = config.boolean("optimizer.bf16", bf16);
  if (has_section(config, "mixed_precision") || !config.is_set("optimizer.bf16") || of_optimizer == bf16)
    return;
  config.problem(
      "LW001", "optimizer.bf16",
      fmt::format("`optimizer.bf16 = {}` beside a model in {}: the runtime has an optimizer of the "
                  "model's precision only",
                  of_optimizer, bf16 ? "bf16" : "fp32"),
      fmt::format("set `optimizer.bf16 = {}`, or leave it out", bf16));
}

}  // namespace

void bind_precision(EffectiveConfig& config, ModelSpec& spec) {
  bool bf16 = config.boolean("model.bf16", false);
  bool fp16 = config.boolean("model.fp16", false);
  const char* fp16_key = "model.fp16";
  bool wide_gradients = config.boolean("ddp.grad_reduce_in_fp32", false);
  bool fp8_recipe = false;

  if (has_section(config, "mixed_precision")) {
    // Bridge writes the recipe's fields over those of model, optimizer and ddp (mixed_precision.py, setup).
    const std::string recipe = config.text("mixed_precision.recipe", "");
    fp8_recipe = is_fp8_recipe(recipe);
    bf16 = config.boolean("mixed_precision.bf16", false) || is_bf16_recipe(recipe) || fp8_recipe;
    fp16 = config.boolean("mixed_precision.fp16", false);
    fp16_key = "mixed_precision.fp16";
    wide_gradients = config.boolean("mixed_precision.grad_reduce_in_fp32", true);
    const bool fp32 = config.boolean("mixed_precision.fp32", false);
    if (fp32 && bf16)
      config.problem("LW003", "mixed_precision.fp32", "the config asks for fp32 and bf16 at once");
    if (!recipe.empty() && !is_bf16_recipe(recipe) && !fp8_recipe && recipe != "fp32") {
      config.problem(
          "LW001", "mixed_precision.recipe", fmt::format("the runtime has no precision recipe `{}`", recipe),
          "use `bf16_mixed` or `bf16_with_fp8_current_scaling_mixed`, or leave the section out for fp32");
    }
  }
  bind_fp8(config, spec, has_section(config, "mixed_precision") ? "mixed_precision" : "model", fp8_recipe,
           bf16);
  if (fp16) {
    config.problem("LW001", fp16_key, "the runtime has no fp16 with loss scaling", "use bf16 or fp32");
  }
  check_optimizer_precision(config, bf16);
  // What is sent between pipeline stages; plans have one stage.
  for (const char* key : {"mixed_precision.pipeline_dtype", "model.pipeline_dtype"}) config.note_used(key);
  spec.param_dtype = bf16 ? DType::bf16 : DType::f32;
  bind_parameter_types(config, bf16, fp16);
  spec.has_masters = bf16;
  spec.grad_dtype = bf16 && !wide_gradients ? DType::bf16 : DType::f32;
}

void check_fp8_extents(EffectiveConfig& config, const ModelSpec& spec) {
  if (spec.fp8 == ModelSpec::Fp8::none) return;
  constexpr std::int64_t kGroup = 16;  // what the library's fp8 products ask for
  const Dims& d = spec.dims;
  const std::pair<const char*, std::int64_t> extents[] = {
      {"model.hidden_size", d.hidden},
      {"model.ffn_hidden_size", d.ffn_hidden},
      {"model.num_attention_heads", d.heads * d.head_dim},
      {"model.num_query_groups", 2 * d.kv_heads * d.head_dim},
      {"train.micro_batch_size", d.tokens()}};
  for (const auto& [key, extent] : extents) {
    if (extent % kGroup == 0) continue;
    config.problem("LW001", key,
                   fmt::format("`{}` makes an extent of {} in fp8 products, which take multiples of {}", key,
                               extent, kGroup),
                   "choose another size, or leave fp8 out");
  }
}

}  // namespace capstan::plan
