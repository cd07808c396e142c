#include "runtime/data/token_source.h"

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

Outcome<std::unique_ptr<TokenSource>> open_kind(const plan::Plan& plan) {
  const plan::Data& data = plan.data;
  if (data.kind == "text") return open_text(data.path, plan.dims.vocab);
  if (data.kind == "token_shards") return open_token_shards(data.path);
  if (data.kind == "megatron_indexed") return open_megatron_indexed(data.path);
  if (data.kind == "random") return make_random_tokens(data.seed, plan.dims.vocab);
  return run_problem("RN010", "the plan names no data to train on", {},
                     "set `dataset.path` (and `execute.data`) in the config and compile again");
}

}  // namespace

Outcome<std::unique_ptr<TokenSource>> open_data(const plan::Plan& plan) {
  Outcome<std::unique_ptr<TokenSource>> source = open_kind(plan);
  if (!source.ok()) return source;
  const std::uint64_t has = source.value()->count(),
                      needs = static_cast<std::uint64_t>(plan.dims.seq_length) + 1;
  if (has >= needs) return source;
  return run_problem("RN011",
                     fmt::format("the dataset `{}` holds {} tokens, one sample needs {}",
                                 source.value()->name(), has, needs),
                     {{"path", source.value()->name()}},
                     "give a longer dataset, or lower `model.seq_length`");
}

}  // namespace capstan::runtime
