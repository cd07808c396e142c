// How long a plan takes: a dense model of 96 layers (GPT-3's shape), from config text to the bytes of
// plan.json, and its parts. Run: cmake --build --preset release --target compile_bench &&
// build/release/tests/compile_bench
#include <benchmark/benchmark.h>

#include "compiler/plan/compile.h"
#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/bound_config.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

const char* kConfig = R"(
[target]
stack = "bridge-0.4"
[model]
num_layers = 96
hidden_size = 12288
num_attention_heads = 96
ffn_hidden_size = 49152
seq_length = 2048
vocab_size = 51200
hidden_dropout = 0.1
attention_dropout = 0.1
recompute_granularity = "selective"
cuda_graph_impl = "transformer_engine"
cuda_graph_scope = ["attn", "mlp"]
use_te_rng_tracker = true
[rng]
te_rng_tracker = true
[mixed_precision]
bf16 = true
[train]
micro_batch_size = 1
global_batch_size = 8
train_iters = 1000
[optimizer]
lr = 6e-5
)";

ModelSpec large() {
  ModelSpec spec = small_gpt();
  spec.dims = {96, 12288, 96, 96, 128, 49152, 51200, 51200, 2048, 1, 8};
  spec.hidden_dropout = spec.attention_dropout = 0.1;
  return spec;
}

void config_to_plan_json(benchmark::State& state) {
  for (auto _ : state) {
    const auto bound = bind_text(kConfig, "bridge-0.4");
    Sink sink;
    const auto plan =
        compile({bound->config, *bound->schema, nullptr, "large.toml", "bench", &bound->sources}, sink);
    if (!plan) state.SkipWithError("the config does not compile");
    const std::string text = write_json(*plan);
    state.counters["ops"] = static_cast<double>(plan->ops.size());
    state.counters["buffers"] = static_cast<double>(plan->buffers.size());
    state.counters["bytes"] = static_cast<double>(text.size());
  }
}

void lower_only(benchmark::State& state) {
  const ModelSpec spec = large();
  for (auto _ : state) benchmark::DoNotOptimize(lower(spec));
}

void passes_with_verifier(benchmark::State& state) {
  const ModelSpec spec = large();
  const Plan lowered = lower(spec);
  for (auto _ : state) {
    Plan plan = lowered;
    if (!run_passes(plan, spec).ok()) state.SkipWithError("a pass failed");
  }
}

void write_only(benchmark::State& state) {
  const ModelSpec spec = large();
  Plan plan = lower(spec);
  run_passes(plan, spec);
  for (auto _ : state) benchmark::DoNotOptimize(write_json(plan));
}

BENCHMARK(config_to_plan_json)->Unit(benchmark::kMillisecond);
BENCHMARK(lower_only)->Unit(benchmark::kMillisecond);
BENCHMARK(passes_with_verifier)->Unit(benchmark::kMillisecond);
BENCHMARK(write_only)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace capstan::plan

BENCHMARK_MAIN();
