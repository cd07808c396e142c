// Training steps of the bench presets on one CUDA device: how long a step takes eagerly, with captured scopes
// and as one captured iteration, and what that is of the device's measured matrix ceiling. One row a preset
// and mode.
//
//   gpu_steps [--presets S1,S2,S3] [--modes eager,scoped,layers,iteration] [--grads bf16|f32] [--steps N]
//             [--nondeterministic] [--unfused] [--fp8] [--profile PRESETS] [--launches PRESETS] [--json FILE]
//
// --launches times cudaGraphLaunch to an idle device, for the whole iteration and for the ops of each kind
// alone.
//
// A step is: upload of a fresh random batch, forward, cross-entropy, backward, clip by global norm 1.0,
// AdamW, weights written back, the scalars read; bf16 parameters, f32 masters and moments. As in training
// (runtime/execute/trainer), steps are issued before the scalars of those before them are read, several in a
// row, and a step's time is from the end of the one before it to its own end, as the host sees them; median
// of N steps.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/device/cuda_backend.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/issue_order.h"
#include "runtime/execute/state.h"

namespace {

using namespace capstan;
using namespace capstan::runtime;
using Clock = std::chrono::steady_clock;

struct Options {
  std::vector<std::string> presets = {"S1", "S2", "S3"};
  std::vector<std::string> modes = {"eager", "scoped", "layers", "iteration"};
  std::string profile, launches, json;
  int steps = 20;
  bool deterministic = true, fused = true, fp8 = false;
  plan::DType gradients = plan::DType::bf16;
};

[[noreturn]] void fail(const std::string& message) {
  std::fprintf(stderr, "gpu_steps: %s\n", message.c_str());
  std::exit(2);
}

void must(const Status& status) {
  if (!status.ok()) fail(status.error().code + ": " + status.error().message);
}

plan::ModelSpec preset(const std::string& name) {
  plan::ModelSpec spec;
  spec.producer = "gpu_steps";
  spec.config_name = name;
  spec.config_digest = std::string(64, '0');
  spec.backend = "cuda";
  spec.norm_eps = 1e-6;
  spec.hidden_dropout = spec.attention_dropout = 0;
  spec.param_dtype = plan::DType::bf16;
  spec.has_masters = true;
  spec.optimizer.max_lr = 3e-4;
  spec.optimizer.decay_style = "constant";
  spec.data = {"random", "", 1};
  spec.schedule = {1000, 3, "none", 0, 1};
  const bool gpt = name == "S2" || name == "S2b";
  if (name == "S1") {
    spec.dims = {12, 512, 8, 8, 64, 1408, 32000, 32000, 256, 2, 1};
  } else if (gpt) {
    spec.dims = {12, 768, 12, 12, 64, 3072, 50304, 50304, 1024, name == "S2" ? 16 : 32, 1};
  } else if (name == "S3") {
    spec.dims = {16, 2048, 16, 8, 128, 8192, 32000, 32000, 4096, 2, 1};
  } else if (name == "C") {  // one large product, for the ceiling
    spec.dims = {1, 8192, 64, 64, 128, 8192, 256, 256, 8192, 1, 1};
  } else {
    fail("there is no preset `" + name + "`");
  }
  spec.normalization = gpt ? plan::Normalization::layer_norm : plan::Normalization::rms_norm;
  spec.activation = gpt ? plan::Activation::gelu_tanh : plan::Activation::swiglu;
  spec.positions = gpt ? plan::Positions::learned : plan::Positions::rope;
  spec.rotary_dim = gpt ? 0 : spec.dims.head_dim;
  spec.linear_bias = spec.qkv_bias = gpt;
  spec.tied_head = name != "S3";
  spec.output_init_std = 0.02 / std::sqrt(2.0 * static_cast<double>(spec.dims.layers));
  return spec;
}

plan::Plan make_plan(const std::string& name, const std::string& mode, const Options& options) {
  plan::ModelSpec spec = preset(name);
  spec.grad_dtype = options.gradients;
  spec.deterministic = options.deterministic;
  if (options.fp8 && name != "C") spec.fp8 = plan::ModelSpec::Fp8::hybrid;
  if (!options.fused) spec.backend = "auto";  // pass_fuse works on plans for CUDA only
  using Extent = plan::CaptureSpec::Extent;
  if (mode == "scoped" || mode == "layers") {
    spec.capture.extent = Extent::scoped;
    if (mode == "scoped") spec.capture.modules = {"attn", "mlp"};
  } else if (mode == "iteration") {
    spec.capture.extent = Extent::iteration;
    spec.capture.optimizer = true;
  } else if (mode != "eager") {
    fail("there is no mode `" + mode + "`");
  }
  spec.capture.impl_key = "model.cuda_graph_impl";
  spec.capture.modules_key = "model.cuda_graph_scope";
  spec.capture.optimizer_key = "optimizer.optimizer_cuda_graph";
  plan::Plan plan = plan::lower(spec);
  const plan::PassResult result = plan::run_passes(plan, spec);
  if (!result.ok()) fail(result.fault.empty() ? result.refusals[0].message : result.fault);
  return plan;
}

std::unique_ptr<Backend> open(const plan::Plan& plan) {
  auto backend = make_cuda_backend();
  if (!backend.ok()) fail(backend.error().message);
  must(backend.value()->prepare(plan));
  must(backend.value()->initialize());
  return std::move(backend.value());
}

void upload_batch(Backend& backend, const plan::Plan& plan, std::mt19937& random) {
  const plan::Buffer& batch = plan.buffer(plan::names::kBatchTokens);
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch.elements()));
  for (std::int32_t& token : tokens) {
    token = static_cast<std::int32_t>(random() % static_cast<unsigned>(plan.dims.vocab));
  }
  must(backend.upload(batch.id, std::as_bytes(std::span(tokens))));
}

/// So that buffers hold what they hold in training, not zeros, which would flatter.
void run_one_step(const plan::Plan& plan, Backend& backend) {
  std::mt19937 random(1);
  upload_batch(backend, plan, random);
  Executor executor(plan, backend);
  must(executor.run_eager());
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Row {
  std::string preset, mode;
  double milliseconds = 0, fastest = 0, slowest = 0, tokens_per_second = 0, utilization = 0;
  /// Host time of issuing a step while others run: all together by their number, the median, and the median
  /// of those that are issued first after a while.
  double issue_us = 0, median_issue_us = 0, first_issue_us = 0;
  double idle_issue_us = 0;  ///< to a device that does nothing
  double prepare_seconds = 0, capture_seconds = 0, instantiate_seconds = 0;
  std::uint64_t nodes = 0, graphs = 0, launches = 0, planned = 0, peak = 0;
  double loss = 0;
};

/// Work items that the host issues for these ops one by one.
std::uint64_t count_nodes(Backend& backend, const std::vector<plan::OpId>& ops) {
  if (ops.empty()) return 0;
  constexpr std::uint32_t kScratch = 1U << 24;
  must(backend.begin_record(kScratch));
  for (const plan::OpId op : ops) must(backend.run(op));
  const auto info = backend.end_record();
  if (!info.ok()) fail(info.error().message);
  must(backend.drop_recording(kScratch));
  return info.value().nodes;
}

Row measure(const std::string& name, const std::string& mode, const Options& options, double ceiling) {
  const plan::Plan plan = make_plan(name, mode, options);
  const Clock::time_point begin = Clock::now();
  const std::unique_ptr<Backend> backend = open(plan);
  Row row;
  row.prepare_seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  Executor executor(plan, *backend);
  std::mt19937 random(1);
  const bool captured = mode != "eager";
  const auto time_issue = [&](bool replays) {
    const Clock::time_point began = Clock::now();
    must(replays ? executor.run_captured() : executor.run_eager());
    return std::chrono::duration<double>(Clock::now() - began).count() * 1e6;
  };
  ScalarReader reader(plan, *backend);
  const auto read = [&](int step) {
    auto scalars = reader.await(static_cast<std::size_t>(step) % Backend::kReadSlots);
    if (!scalars.ok()) fail(scalars.error().message);
    return scalars.value();
  };
  const auto issue_step = [&](int step, bool replays) {
    upload_batch(*backend, plan, random);
    const double microseconds = time_issue(replays);
    must(reader.begin(static_cast<std::size_t>(step) % Backend::kReadSlots));
    return microseconds;
  };
  constexpr int kWarmUp = 6;
  for (int step = 0; step < kWarmUp; ++step) {
    issue_step(step, captured && step >= 2);
    read(step);
  }
  std::vector<double> times, busy, first, idle;
  Clock::time_point done;
  // The first steps fill the pipeline and are not counted.
  const int ahead = captured ? static_cast<int>(Backend::kReadSlots) : 2;
  const int last = kWarmUp + options.steps;
  int issued = kWarmUp;
  while (issued < std::min(last + 1, kWarmUp + ahead / 2)) issue_step(issued++, captured);
  for (int step = kWarmUp; step <= last; ++step) {
    if (issued - step <= ahead / 2) {
      const int until = std::min(last + 1, step + ahead);
      if (issued < until) {
        first.push_back(issue_step(issued++, captured));
        busy.push_back(first.back());
      }
      while (issued < until) busy.push_back(issue_step(issued++, captured));
    }
    row.loss = read(step).loss;
    const Clock::time_point seen = Clock::now();
    if (step > kWarmUp) times.push_back(std::chrono::duration<double>(seen - done).count() * 1e3);
    done = seen;
  }
  for (int i = 0; i < 20; ++i) {
    must(backend->synchronize());
    idle.push_back(time_issue(captured));
  }
  must(backend->synchronize());
  row.issue_us = mean(busy);
  row.median_issue_us = median(busy);
  row.first_issue_us = median(first);
  row.idle_issue_us = median(idle);
  row.preset = name;
  row.mode = mode;
  row.milliseconds = median(times);
  row.fastest = *std::min_element(times.begin(), times.end());
  row.slowest = *std::max_element(times.begin(), times.end());
  row.tokens_per_second =
      static_cast<double>(plan.dims.tokens() * plan.dims.micro_batches) / row.milliseconds * 1e3;
  row.utilization = plan.model_flops_per_step / (row.milliseconds * 1e-3) / ceiling;
  for (const CapturedSegment& segment : executor.captures()) {
    row.nodes += segment.info.nodes;
    row.capture_seconds += segment.info.capture_seconds;
    row.instantiate_seconds += segment.info.instantiate_seconds;
    ++row.graphs;
  }
  row.planned = plan.memory.arena;
  row.peak = backend->memory().peak;
  for (const SegmentIssue& issue : step_order(plan)) {
    const plan::Segment& segment = plan.segments[issue.segment];
    std::vector<plan::OpId> ops;
    for (const OpIssue& each : segment_order(plan, segment)) ops.push_back(each.op);
    row.launches += segment.mode == plan::SegmentMode::graph ? 1 : count_nodes(*backend, ops);
  }
  return row;
}

// The ceiling: bf16 operations per second of the largest forward product of preset C, 8192 x 16384 x 8192.
double measure_ceiling(const Options& options) {
  const plan::Plan plan = make_plan("C", "eager", options);
  const std::unique_ptr<Backend> backend = open(plan);
  run_one_step(plan, *backend);
  for (const plan::Op& op : plan.ops) {
    if (op.kind != plan::OpKind::gemm || op.module != "mlp") continue;
    std::vector<double> seconds;
    for (int i = 0; i < 12; ++i) {
      must(backend->start_timer());
      must(backend->run(op.id));
      auto taken = backend->stop_timer();
      if (!taken.ok()) fail(taken.error().message);
      if (i >= 2) seconds.push_back(taken.value());
    }
    return 2.0 * static_cast<double>(op.integer("m")) * static_cast<double>(op.integer("n")) *
           static_cast<double>(op.integer("k")) / median(seconds);
  }
  fail("preset C has no product");
}

// Device time of each kind of op over a step, each op issued five times in a row.
void profile(const std::string& name, const Options& options) {
  const plan::Plan plan = make_plan(name, "eager", options);
  const std::unique_ptr<Backend> backend = open(plan);
  run_one_step(plan, *backend);
  std::map<std::string, std::pair<double, int>> kinds;
  double all = 0;
  for (const plan::Op& op : plan.ops) {
    constexpr int kRuns = 5;
    must(backend->run(op.id));
    must(backend->start_timer());
    for (int i = 0; i < kRuns; ++i) must(backend->run(op.id));
    auto seconds = backend->stop_timer();
    if (!seconds.ok()) fail(seconds.error().message);
    const double milliseconds = seconds.value() * 1e3 / kRuns;
    std::string key = plan::op_kind_name(op.kind);
    if (op.kind == plan::OpKind::gemm) {
      key += " " + std::to_string(op.integer("m")) + "x" + std::to_string(op.integer("n")) + "x" +
             std::to_string(op.integer("k")) + (op.boolean("transpose_a") ? " T" : " N") +
             (op.boolean("transpose_b") ? "T" : "N") + (op.boolean("accumulate") ? " +=" : "");
      const double rate = 2e-9 * static_cast<double>(op.integer("m")) * static_cast<double>(op.integer("n")) *
                          static_cast<double>(op.integer("k")) / milliseconds;
      key += " (" + std::to_string(static_cast<int>(rate / 50) * 50) + "+ TFLOP/s)";
    }
    kinds[key].first += milliseconds;
    ++kinds[key].second;
    all += milliseconds;
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [key, sum] : kinds) order.emplace_back(sum.first, key);
  std::sort(order.rbegin(), order.rend());
  std::printf("\nprofile of %s: %.3f ms of device time in %zu ops\n", name.c_str(), all, plan.ops.size());
  for (const auto& [milliseconds, key] : order) {
    std::printf("%9.3f ms  %4d x  %s\n", milliseconds, kinds[key].second, key.c_str());
  }
  std::fflush(stdout);
}

struct LaunchTime {
  double median = 0, fastest = 0;
  double rested = 0;  ///< the device idle and the host busy for a while before
  double queued = 0;  ///< right behind another launch
  std::uint64_t nodes = 0;
};

/// Host microseconds of launching a recording of these ops while the device does nothing.
LaunchTime time_launch(Backend& backend, std::uint32_t key, const std::vector<plan::OpId>& ops) {
  must(backend.begin_record(key));
  for (const plan::OpId op : ops) must(backend.run(op));
  const auto info = backend.end_record();
  if (!info.ok()) fail(info.error().message);
  std::vector<double> times, rested, queued;
  const auto launch = [&](std::vector<double>& to) {
    const Clock::time_point begin = Clock::now();
    must(backend.replay(key));
    to.push_back(std::chrono::duration<double>(Clock::now() - begin).count() * 1e6);
  };
  for (int i = 0; i < 4; ++i) must(backend.replay(key));
  for (int i = 0; i < 20; ++i) {
    must(backend.synchronize());
    launch(times);
    launch(queued);
    must(backend.synchronize());
    const Clock::time_point idle = Clock::now();
    while (Clock::now() - idle < std::chrono::milliseconds(1)) {
    }
    launch(rested);
  }
  must(backend.synchronize());
  must(backend.drop_recording(key));
  LaunchTime time;
  time.median = median(times);
  time.fastest = *std::min_element(times.begin(), times.end());
  time.rested = median(rested);
  time.queued = median(queued);
  time.nodes = info.value().nodes;
  return time;
}

void study_launches(const std::string& name, const Options& options) {
  const plan::Plan plan = make_plan(name, "eager", options);
  const std::unique_ptr<Backend> backend = open(plan);
  run_one_step(plan, *backend);
  std::map<std::string, std::vector<plan::OpId>> kinds;
  std::vector<plan::OpId> all;
  for (const plan::Op& op : plan.ops) {
    std::string kind = plan::op_kind_name(op.kind);
    if (kind.rfind("gemm", 0) == 0) {
      kind += op.boolean("transpose_a") ? " T" : " N";
      kind += op.boolean("transpose_b") ? "T" : "N";
    }
    kinds[kind].push_back(op.id);
    all.push_back(op.id);
  }
  std::printf(
      "\nlaunches of %s to an idle device: nodes; host us: median, fastest, 1 ms after the device, behind "
      "another\n",
      name.c_str());
  const auto print = [](const std::string& what, const LaunchTime& time) {
    std::printf("%-32s %5llu %8.1f %8.1f %8.1f %8.1f\n", what.c_str(),
                static_cast<unsigned long long>(time.nodes), time.median, time.fastest, time.rested,
                time.queued);
  };
  std::uint32_t key = 1U << 20;
  print("all ops", time_launch(*backend, key++, all));
  for (const auto& [kind, ops] : kinds) print(kind, time_launch(*backend, key++, ops));
  std::fflush(stdout);
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, ',');) parts.push_back(part);
  return parts;
}

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    const auto value = [&]() -> std::string {
      if (i + 1 >= count) fail("`" + word + "` needs a value");
      return words[++i];
    };
    if (word == "--presets") {
      options.presets = split(value());
    } else if (word == "--modes") {
      options.modes = split(value());
    } else if (word == "--grads") {
      options.gradients = value() == "f32" ? plan::DType::f32 : plan::DType::bf16;
    } else if (word == "--steps") {
      options.steps = std::max(static_cast<int>(Backend::kReadSlots), std::atoi(value().c_str()));
    } else if (word == "--nondeterministic") {
      options.deterministic = false;
    } else if (word == "--fp8") {
      options.fp8 = true;
    } else if (word == "--unfused") {
      options.fused = false;
    } else if (word == "--profile") {
      options.profile = value();
    } else if (word == "--launches") {
      options.launches = value();
    } else if (word == "--json") {
      options.json = value();
    } else {
      fail("unknown option `" + word + "`");
    }
  }
  return options;
}

}  // namespace

int main(int count, char** words) {
  const Options options = parse(count, words);
  if (!options.profile.empty()) {
    for (const std::string& name : split(options.profile)) profile(name, options);
    return 0;
  }
  if (!options.launches.empty()) {
    for (const std::string& name : split(options.launches)) study_launches(name, options);
    return 0;
  }
  const double ceiling = measure_ceiling(options);
  std::printf("matrix ceiling %.0f TFLOP/s; gradients %s; %s; %s\n", ceiling * 1e-12,
              plan::dtype_name(options.gradients),
              options.deterministic ? "deterministic" : "not deterministic",
              options.fused ? "fused" : "not fused");
  std::printf("%-4s %-10s %9s %17s %10s %6s %8s %8s %8s %8s %9s %6s %7s %10s %9s %9s %7s\n", "", "mode",
              "ms/step", "(min-max)", "k tok/s", "MFU %", "issue us", "median", "first", "idle", "launches",
              "nodes", "graphs", "capture ms", "plan GiB", "peak GiB", "loss");
  std::ofstream json;
  if (!options.json.empty()) json.open(options.json);
  for (const std::string& name : options.presets) {
    for (const std::string& mode : options.modes) {
      const Row r = measure(name, mode, options, ceiling);
      constexpr double kGiB = 1073741824.0;
      std::printf(
          "%-4s %-10s %9.3f (%7.3f-%7.3f) %10.1f %6.1f %8.1f %8.1f %8.1f %8.1f %9llu %6llu %7llu %10.2f "
          "%9.3f %9.3f %7.3f\n",
          r.preset.c_str(), r.mode.c_str(), r.milliseconds, r.fastest, r.slowest, r.tokens_per_second / 1e3,
          100 * r.utilization, r.issue_us, r.median_issue_us, r.first_issue_us, r.idle_issue_us,
          static_cast<unsigned long long>(r.launches), static_cast<unsigned long long>(r.nodes),
          static_cast<unsigned long long>(r.graphs), 1e3 * (r.capture_seconds + r.instantiate_seconds),
          static_cast<double>(r.planned) / kGiB, static_cast<double>(r.peak) / kGiB, r.loss);
      std::fflush(stdout);
      if (json) {
        json << "{\"preset\": \"" << r.preset << "\", \"mode\": \"" << r.mode
             << "\", \"ms\": " << r.milliseconds << ", \"tokens_per_second\": " << r.tokens_per_second
             << ", \"mfu\": " << r.utilization << ", \"issue_us\": " << r.issue_us
             << ", \"median_issue_us\": " << r.median_issue_us << ", \"first_issue_us\": " << r.first_issue_us
             << ", \"idle_issue_us\": " << r.idle_issue_us << ", \"launches\": " << r.launches
             << ", \"nodes\": " << r.nodes << ", \"capture_s\": " << r.capture_seconds
             << ", \"instantiate_s\": " << r.instantiate_seconds << ", \"planned_bytes\": " << r.planned
             << ", \"peak_bytes\": " << r.peak << ", \"loss\": " << r.loss << "}\n";
        json.flush();
      }
    }
  }
  return 0;
}
