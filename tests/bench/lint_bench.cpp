// What `capstan lint` costs: the whole process on one file, a batch of a thousand files in one process, and
// the parts of a start.
//   cmake --build --preset release --target lint_bench && build/release/tests/lint_bench
#include <benchmark/benchmark.h>

#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "compiler/driver/conformance_table.h"
#include "compiler/driver/workspace.h"
#include "compiler/embed/embedded.h"
#include "compiler/schema/schema_binary.h"
#include "compiler/solve/check.h"
#include "tests/support/case_text.h"
#include "tests/support/conformance_tables.h"

extern char** environ;

namespace capstan {
namespace {

namespace fs = std::filesystem;

/// A config of the usual size: a mixture-of-experts recipe with scoped graphs. `layers` varies it.
std::string usual_config(int layers) {
  return R"([model]
num_layers = )" +
         std::to_string(layers) + R"(
hidden_size = 4096
num_attention_heads = 32
num_query_groups = 8
ffn_hidden_size = 14336
seq_length = 4096
tensor_model_parallel_size = 1
pipeline_model_parallel_size = 1
context_parallel_size = 1
expert_model_parallel_size = 8
sequence_parallel = false
num_moe_experts = 128
moe_router_topk = 8
moe_router_fusion = true
moe_token_dispatcher_type = "alltoall"
moe_grouped_gemm = true
moe_permute_fusion = true
cuda_graph_impl = "transformer_engine"
cuda_graph_scope = ["attn", "moe_router", "moe_preprocess"]
use_te_rng_tracker = true
apply_rope_fusion = true
attention_dropout = 0.0
hidden_dropout = 0.0
bf16 = true

[rng]
te_rng_tracker = true

[rerun_state_machine]
check_for_nan_in_loss = false

[ddp]
use_distributed_optimizer = true
overlap_grad_reduce = true
overlap_param_gather = true
check_for_nan_in_grad = false
grad_reduce_in_fp32 = false

[train]
global_batch_size = 512
micro_batch_size = 4
train_iters = 50
manual_gc = true
manual_gc_interval = 100

[comm_overlap]
tp_comm_overlap = false

[mixed_precision]
recipe = "bf16_mixed"

[env]
CUDA_DEVICE_MAX_CONNECTIONS = "32"
NCCL_GRAPH_REGISTER = "0"
PYTORCH_CUDA_ALLOC_CONF = "expandable_segments:True"
NCCL_NVLS_ENABLE = "0"

[target]
stack = "bridge-0.4"
gpu = "b200"
num_gpus = 8
)";
}

/// The same with two rules broken, so that conflicts and fixes are searched.
std::string broken_config(int layers) {
  std::string text = usual_config(layers);
  text.replace(text.find("te_rng_tracker = true\n\n[rerun"), 21, "te_rng_tracker = false");
  text.replace(text.find("bf16 = true\n"), 12,
               "bf16 = true\nrecompute_granularity = \"full\"\nrecompute_method = "
               "\"uniform\"\nrecompute_num_layers = 1\n");
  return text;
}

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "capstan-bench-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = path_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

/// Runs capstan with its output dropped; wall-clock seconds. The processor's seconds are added up in
/// `processor`, for machines that do other work beside.
double run_capstan(std::vector<std::string> arguments, double* processor = nullptr) {
  arguments.insert(arguments.begin(), std::string(CAPSTAN_BIN_DIR) + "/capstan");
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  const auto start = std::chrono::steady_clock::now();
  pid_t child = 0;
  if (posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ) != 0)
    throw std::runtime_error("no capstan");
  int status = 0;
  rusage usage{};
  wait4(child, &status, 0, &usage);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  posix_spawn_file_actions_destroy(&actions);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  if (processor != nullptr) *processor += seconds(usage.ru_utime) + seconds(usage.ru_stime);
  if (!WIFEXITED(status) || WEXITSTATUS(status) > 1) throw std::runtime_error("capstan failed");
  return elapsed.count();
}

void measure(benchmark::State& state, const std::vector<std::string>& arguments) {
  double processor = 0;
  for (auto _ : state) state.SetIterationTime(run_capstan(arguments, &processor));
  state.counters["cpu_ms"] = processor * 1e3 / static_cast<double>(state.iterations());
}

void process_on_clean_file(benchmark::State& state) {
  const Folder folder;
  const std::string file = folder.write("a.toml", usual_config(32));
  measure(state, {"lint", "--no-project", file});
}
BENCHMARK(process_on_clean_file)->UseManualTime()->Unit(benchmark::kMillisecond);

void process_on_broken_file(benchmark::State& state) {
  const Folder folder;
  const std::string file = folder.write("a.toml", broken_config(32));
  measure(state, {"lint", "--no-project", file});
}
BENCHMARK(process_on_broken_file)->UseManualTime()->Unit(benchmark::kMillisecond);

constexpr int kFiles = 1000;

/// Process start included; one process, one thread.
void measure_batch(benchmark::State& state, const Folder& folder, const char* format) {
  measure(state, {"lint", "--no-project", "--format", format, folder.path()});
  const double files = kFiles * static_cast<double>(state.iterations());
  state.counters["files_per_second"] = benchmark::Counter(files, benchmark::Counter::kIsRate);
  // Of the processor's time, for machines that do other work beside.
  state.counters["files_per_cpu_second"] = 1e3 * kFiles / state.counters["cpu_ms"];
}

void process_on_thousand_files(benchmark::State& state) {
  const Folder folder;
  for (int index = 0; index < kFiles; ++index)
    folder.write("f" + std::to_string(index) + ".toml", usual_config(8 + index));
  measure_batch(state, folder, "concise");
}
BENCHMARK(process_on_thousand_files)->UseManualTime()->Unit(benchmark::kMillisecond);

void process_on_thousand_broken_files(benchmark::State& state) {
  const Folder folder;
  for (int index = 0; index < kFiles; ++index)
    folder.write("f" + std::to_string(index) + ".toml", broken_config(8 + index));
  measure_batch(state, folder, "concise");
}
BENCHMARK(process_on_thousand_broken_files)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Configs of all kinds for all releases, of which the real framework rejects more than half: cases of the
/// conformance tables at equal distances.
void write_mixed_files(const Folder& folder) {
  const ConformanceTables tables;
  ConformanceCases cases;
  for (const char* dialect : {"legacy", "scope", "modules"})
    read_cases(tables.path_of(std::string("cases-") + dialect + ".jsonl"), cases);
  constexpr std::size_t kDistance = 77;
  std::size_t number = 0;
  int written = 0;
  for (const char* table : kConformanceTables) {
    const std::string path = tables.path_of(std::string("verdicts-") + table + ".jsonl");
    const auto stack = stack_of_table(path, builtin_schema());
    if (!stack) throw std::runtime_error(std::string("no stack fits ") + table);
    const SchemaView schema(builtin_schema(), *stack);
    for (const RealVerdict& verdict : read_verdicts(path)) {
      if (number++ % kDistance != 0 || written == kFiles) continue;
      folder.write("f" + std::to_string(written++) + ".toml",
                   case_text(cases.at(verdict.id), *stack, schema));
    }
  }
  if (written != kFiles) throw std::runtime_error("the tables hold too few cases");
}

void process_on_thousand_mixed_files(benchmark::State& state) {
  const Folder folder;
  write_mixed_files(folder);
  measure_batch(state, folder, "concise");
}
BENCHMARK(process_on_thousand_mixed_files)->UseManualTime()->Unit(benchmark::kMillisecond);

/// The same with ways out searched and checked for each finding.
void process_that_mends_thousand_mixed_files(benchmark::State& state) {
  const Folder folder;
  write_mixed_files(folder);
  measure_batch(state, folder, "text");
}
BENCHMARK(process_that_mends_thousand_mixed_files)->UseManualTime()->Unit(benchmark::kMillisecond);

void process_that_prints_its_version(benchmark::State& state) {
  measure(state, {"--version"});
}
BENCHMARK(process_that_prints_its_version)->UseManualTime()->Unit(benchmark::kMillisecond);

void decode_schema_of_the_program(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(decode_schema(embedded_schema()));
}
BENCHMARK(decode_schema_of_the_program)->Unit(benchmark::kMicrosecond);

void load_workspace(benchmark::State& state) {
  builtin_schema();
  for (auto _ : state) {
    Sink sink;
    Workspace workspace({}, sink);
    benchmark::DoNotOptimize(workspace.ok());
  }
}
BENCHMARK(load_workspace)->Unit(benchmark::kMicrosecond);

void prepare_one_config(benchmark::State& state) {
  Sink sink;
  Workspace workspace({}, sink);
  const SourceId file = workspace.sources().add("a.toml", usual_config(32), SourceKind::file);
  for (auto _ : state) benchmark::DoNotOptimize(workspace.prepare(file, sink));
}
BENCHMARK(prepare_one_config)->Unit(benchmark::kMicrosecond);

void judge_one_config(benchmark::State& state) {
  Sink sink;
  Workspace workspace({}, sink);
  const SourceId file = workspace.sources().add("a.toml", usual_config(32), SourceKind::file);
  const auto prepared = workspace.prepare(file, sink);
  for (auto _ : state) {
    Sink found;
    check({prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources(),
           prepared->shared},
          {}, found);
    benchmark::DoNotOptimize(found.diagnostics().size());
  }
  state.counters["items"] = static_cast<double>(prepared->rules->items.size());
}
BENCHMARK(judge_one_config)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace capstan

BENCHMARK_MAIN();
