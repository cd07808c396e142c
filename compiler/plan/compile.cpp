#include "compiler/plan/compile.h"

#include "compiler/plan/effective_config.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"

namespace capstan::plan {

std::optional<Plan> compile(const BindRequest& request, Sink& sink, std::string_view last) {
  const std::optional<ModelSpec> spec = bind_model(request, sink);
  if (!spec) return std::nullopt;
  Plan plan = lower(*spec);
  const PassResult result = run_passes(plan, *spec, last);
  EffectiveConfig config(request.config, request.schema, request.final_facts, request.sources, sink);
  for (const Refusal& refusal : result.refusals)
    config.problem("LW004", refusal.key, refusal.message, refusal.help);
  if (!result.fault.empty()) {
    config.problem("LW005", "", "the compiled plan is wrong " + result.fault,
                   "report this with the config; no plan was written");
  }
  if (!result.ok()) return std::nullopt;
  return plan;
}

}  // namespace capstan::plan
