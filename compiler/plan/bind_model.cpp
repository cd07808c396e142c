#include "compiler/plan/bind_model.h"

#include "compiler/plan/binding.h"
#include "grammar/source/sha256.h"

namespace capstan::plan {

std::optional<ModelSpec> bind_model(const BindRequest& request, Sink& sink) {
  Sink own;
  EffectiveConfig config(request.config, request.schema, request.final_facts, request.sources, own);
  ModelSpec spec;
  spec.producer = request.producer;
  spec.config_name = request.config_name;
  spec.config_digest = config_digest(request.config, request.schema.stack());
  spec.backend = config.text("execute.backend", "auto");
  refuse_unsupported(config);
  bind_architecture(config, spec);
  bind_precision(config, spec);
  bind_training(config, spec);
  check_fp8_extents(config, spec);
  bind_recompute(config, spec);
  bind_capture(config, spec);
  check_warmup(config, spec);
  judge_unread_settings(config);
  const bool usable = !own.has_errors();
  for (Diagnostic& diagnostic : own.take()) sink.report(std::move(diagnostic));
  if (!usable) return std::nullopt;
  return spec;
}

std::string config_digest(const Config& config, const Stack& stack) {
  Sha256 hash;
  hash.update("stack " + stack.name + "\n");
  for (const auto& [component, version] : stack.components)
    hash.update(component + " " + to_text(version) + "\n");
  for (const auto& [path, setting] : config.settings)
    hash.update(path + " = " + to_text(setting.value) + "\n");
  return hash.finish();
}

}  // namespace capstan::plan
