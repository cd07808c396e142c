// A grid of 10^6 points with more than twelve reasons: what `capstan sweep` computes, without reading the
// file.
//   cmake --build --preset release --target sweep_bench && build/release/tests/sweep_bench
#include <benchmark/benchmark.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/ruleset/resolve.h"
#include "compiler/schema/schema.h"
#include "compiler/solve/sweep.h"

namespace capstan {
namespace {

Value list(const std::vector<std::string>& items) {
  Value::List out;
  for (const std::string& item : items) out.emplace_back(item);
  return Value(std::move(out));
}

void put(Config& config, const std::string& path, Value value) {
  Setting setting;
  setting.path = path;
  setting.value = std::move(value);
  setting.origin.kind = OriginKind::file;
  config.settings[path] = std::move(setting);
}

void sweep_a_million_points(benchmark::State& state) {
  const Stack& stack = *builtin_schema().find_stack("bridge-0.4");
  const SchemaView schema(builtin_schema(), stack);
  const RuleBook book(schema, select(builtin_rules(), stack));
  Config config;
  put(config, "model.num_layers", Value(48));
  put(config, "model.hidden_size", Value(4096));
  put(config, "model.num_attention_heads", Value(32));
  put(config, "model.num_moe_experts", Value(64));
  put(config, "model.use_te_rng_tracker", Value(true));
  put(config, "rng.te_rng_tracker", Value(true));
  const Subject subject(config, book);
  std::vector<SweepAxis> axes;
  const auto axis = [&](const char* name, std::vector<Value> values) {
    FactId key = 0;
    if (!book.rules.set->names.find(name, key)) throw std::runtime_error(name);
    axes.push_back({key, std::move(values)});
  };
  const auto numbers = [](int last) {
    std::vector<Value> values;
    for (int i = 1; i <= last; ++i) values.emplace_back(i);
    return values;
  };
  axis("model.tensor_model_parallel_size", numbers(10));
  axis("model.pipeline_model_parallel_size", numbers(10));
  axis("model.expert_model_parallel_size", numbers(10));
  axis("model.moe_router_topk", numbers(5));
  axis("model.cuda_graph_impl", {Value("none"), Value("local"), Value("transformer_engine")});
  axis("model.cuda_graph_scope",
       {list({"attn"}), list({"moe"}), list({"moe_router"}), list({"moe_preprocess"}),
        list({"moe_router", "moe_preprocess"}), list({"attn", "mlp"}), list({"full_iteration"})});
  axis("model.recompute_granularity", {Value(), Value("full"), Value("selective")});
  axis("model.sequence_parallel", {Value(false), Value(true)});
  axis("model.moe_token_dispatcher_type", {Value("allgather"), Value("alltoall"), Value("flex")});
  std::uint64_t points = 0, legal = 0, reasons = 0;
  for (auto _ : state) {
    const Sweep result = sweep(subject, axes, {}, {});
    if (result.answer == Answer::undecided) throw std::runtime_error("undecided");
    points = result.points;
    legal = result.legal;
    reasons = result.reasons.size();
  }
  state.counters["points"] = static_cast<double>(points);
  state.counters["legal"] = static_cast<double>(legal);
  state.counters["reasons"] = static_cast<double>(reasons);
}
BENCHMARK(sweep_a_million_points)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace capstan

BENCHMARK_MAIN();
