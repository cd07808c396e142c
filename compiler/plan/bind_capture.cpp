#include <fmt/format.h>

#include <algorithm>

#include "compiler/plan/binding.h"

namespace capstan::plan {
namespace {

bool contains(const std::vector<std::string>& words, const char* word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

void bind_recompute(EffectiveConfig& config, ModelSpec& spec) {
  RecomputeSpec& recompute = spec.recompute;
  const std::string granularity = config.text("model.recompute_granularity", "");
  const std::string method = config.text("model.recompute_method", "");
  const auto layers = config.integer("model.recompute_num_layers", 1, 10'000);
  std::vector<std::string> modules = config.words("model.recompute_modules");
  if (granularity == "full") {
    recompute.granularity = RecomputeSpec::Granularity::full;
    if (method != "uniform" && method != "block") {
      config.problem("LW003", "model.recompute_method", "full recompute needs a method",
                     "set it to `uniform` or `block`");
    }
    recompute.method = method == "block" ? RecomputeSpec::Method::block : RecomputeSpec::Method::uniform;
    if (!layers) config.require("model.recompute_num_layers", "layers of a recomputed unit");
    recompute.num_layers = layers.value_or(1);
  } else if (granularity == "selective") {
    recompute.granularity = RecomputeSpec::Granularity::selective;
    // The framework's default (transformer_config.py, recompute_modules).
    if (modules.empty() && config.value("model.recompute_modules").is_none()) modules = {"core_attn"};
    for (const std::string& module : modules) {
      if (module == "core_attn" || module == "mlp" || module == "layernorm") continue;
      config.problem("LW001", "model.recompute_modules",
                     fmt::format("the runtime cannot recompute `{}`", module),
                     "use `core_attn`, `mlp` or `layernorm`");
    }
    recompute.modules = std::move(modules);
  } else if (!granularity.empty()) {
    config.problem("LW003", "model.recompute_granularity",
                   fmt::format("there is no recompute granularity `{}`", granularity),
                   "use `selective` or `full`");
  }
}

void bind_capture(EffectiveConfig& config, ModelSpec& spec) {
  CaptureSpec& capture = spec.capture;
  std::string impl = config.text("model.cuda_graph_impl", "none");
  capture.impl_key = "model.cuda_graph_impl";
  // The switches of earlier releases.
  if (impl == "none" && config.boolean("model.enable_cuda_graph", false)) {
    impl = "local";
    capture.impl_key = "model.enable_cuda_graph";
  }
  if (impl == "none" && config.boolean("model.external_cuda_graph", false)) {
    impl = "transformer_engine";
    capture.impl_key = "model.external_cuda_graph";
  }
  const bool by_modules =
      !config.is_set("model.cuda_graph_scope") && config.is_set("model.cuda_graph_modules");
  capture.modules_key = by_modules ? "model.cuda_graph_modules" : "model.cuda_graph_scope";
  std::vector<std::string> modules = config.words(capture.modules_key);
  // "full" is the old name of whole layers.
  modules.erase(std::remove(modules.begin(), modules.end(), "full"), modules.end());
  config.note_used("model.cuda_graph_scope");
  config.note_used("model.cuda_graph_modules");

  spec.schedule.warmup_steps = config.integer("model.cuda_graph_warmup_steps", 0, std::int64_t{1} << 40, 3);
  spec.schedule.graph_impl = impl;
  capture.optimizer_key = "optimizer.optimizer_cuda_graph";
  capture.optimizer = config.boolean(capture.optimizer_key, false);
  capture.fall_back_to_eager = config.text("execute.capture_fallback", "refuse") == "eager";
  const bool model_tracker = config.boolean("model.use_te_rng_tracker", false);
  capture.rng_tracker = config.boolean("rng.te_rng_tracker", false) || model_tracker;

  if (impl == "full_iteration") {
    capture.extent = CaptureSpec::Extent::iteration;
  } else if (impl == "local" || impl == "transformer_engine") {
    const bool iteration = contains(modules, "full_iteration");
    if (iteration && (impl != "local" || modules.size() > 1)) {
      config.problem("LW004", capture.modules_key,
                     impl != "local" ? "`full_iteration` is a scope of the `local` implementation only"
                                     : "`full_iteration` holds every module and goes with no other scope",
                     "use `model.cuda_graph_impl = \"local\"` with `full_iteration` alone");
    }
    capture.extent = iteration ? CaptureSpec::Extent::iteration : CaptureSpec::Extent::scoped;
    if (!iteration) capture.modules = std::move(modules);
  } else if (impl != "none") {
    config.problem("LW003", capture.impl_key, fmt::format("there is no graph implementation `{}`", impl),
                   "use `none`, `local` or `transformer_engine`");
  }
}

void check_warmup(EffectiveConfig& config, const ModelSpec& spec) {
  if (spec.capture.extent == CaptureSpec::Extent::none) return;
  const std::int64_t warmup = spec.schedule.warmup_steps, steps = spec.schedule.train_steps;
  if (steps > warmup + 1) return;
  std::string path = spec.capture.impl_key;
  if (config.is_set("execute.steps")) path = "execute.steps";
  if (config.is_set("model.cuda_graph_warmup_steps")) path = "model.cuda_graph_warmup_steps";
  config.problem(
      "LW007", path,
      fmt::format("{} steps of warm-up leave nothing {} in a run of {}: what is captured has no effect",
                  warmup, steps > warmup ? "to replay" : "to capture", steps),
      fmt::format("train for more than {} steps, or lower `model.cuda_graph_warmup_steps`", warmup + 1));
}

}  // namespace capstan::plan
