// Whole plans on the device: replay gives the bits of eager issue, resuming gives the bits of going on, the
// loss falls as on the host, and the measured memory is the planned memory.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/execute/executor.h"
#include "runtime/execute/state.h"
#include "tests/device/device_pair.h"
#include "tests/support/model_specs.h"

namespace capstan::runtime::testing {
namespace {

plan::Plan make_plan(const plan::ModelSpec& spec) {
  plan::Plan plan = plan::lower(spec);
  const plan::PassResult result = plan::run_passes(plan, spec);
  EXPECT_TRUE(result.ok()) << result.fault << (result.refusals.empty() ? "" : result.refusals[0].message);
  return plan;
}

/// A model that the fast paths take: heads of 64, sizes that are multiples of 8.
plan::ModelSpec device_llama(DType dtype, double dropout) {
  plan::ModelSpec spec = plan::small_llama();
  spec.dims = {2, 128, 4, 2, 64, 256, 250, 256, 64, 2, 2};
  spec.rotary_dim = 64;
  spec.hidden_dropout = dropout;
  spec.attention_dropout = dropout;
  spec.param_dtype = dtype;
  spec.has_masters = dtype == DType::bf16;
  spec.optimizer.max_lr = 1e-3;
  spec.optimizer.decay_style = "constant";
  return spec;
}

/// Every fused op: GELU (tanh) with biases, LayerNorm, plans made for CUDA.
plan::ModelSpec device_gpt() {
  plan::ModelSpec spec = device_llama(DType::bf16, 0.0);
  spec.backend = "cuda";
  spec.normalization = plan::Normalization::layer_norm;
  spec.activation = plan::Activation::gelu_tanh;
  spec.positions = plan::Positions::learned;
  spec.linear_bias = spec.qkv_bias = true;
  return spec;
}

class Run {
 public:
  Run(const plan::Plan& plan, std::unique_ptr<Backend> backend)
      : plan_(plan), backend_(std::move(backend)), executor_(plan_, *backend_), reader_(plan_, *backend_) {}
  static std::unique_ptr<Run> on_cuda(const plan::Plan& plan) {
    auto backend = make_cuda_backend();
    EXPECT_TRUE(backend.ok());
    return start(plan, std::move(backend.value()));
  }
  static std::unique_ptr<Run> on_host(const plan::Plan& plan) { return start(plan, make_host_backend(2)); }

  /// One step on tokens that depend on the step alone: runs of a few repeated values, which can be learnt.
  StepScalars step(std::int64_t number, bool captured) {
    const plan::Buffer& batch = plan_.buffer(plan::names::kBatchTokens);
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch.elements()));
    std::mt19937 random(static_cast<unsigned>(number + 1));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool repeats = i > 0 && random() % 4 != 0;
      tokens[i] = repeats ? (tokens[i - 1] + 1) % 16 : static_cast<std::int32_t>(random() % 16);
    }
    return step_with(tokens, captured);
  }
  StepScalars step_with(const std::vector<std::int32_t>& tokens, bool captured) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(tokens));
    EXPECT_TRUE(backend_->upload(plan_.buffer(plan::names::kBatchTokens).id, bytes).ok());
    const Status issued = captured ? executor_.run_captured() : executor_.run_eager();
    EXPECT_TRUE(issued.ok()) << issued.error().message;
    if (issues_only_) return {};
    auto scalars = read_scalars(plan_, *backend_);
    EXPECT_TRUE(scalars.ok());
    return scalars.value();
  }
  /// One step on windows of a text, as bytes.
  StepScalars step_on(const std::string& text, std::int64_t number, bool captured) {
    const plan::Buffer& batch = plan_.buffer(plan::names::kBatchTokens);
    const auto width = static_cast<std::size_t>(batch.shape.back());
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(batch.elements()));
    std::mt19937 random(static_cast<unsigned>(number + 7));
    for (std::size_t row = 0; row < tokens.size(); row += width) {
      const std::size_t begin = random() % (text.size() - width);
      for (std::size_t i = 0; i < width; ++i) tokens[row + i] = static_cast<unsigned char>(text[begin + i]);
    }
    return step_with(tokens, captured);
  }
  /// Changes the last bit of a quarter of the bf16 weights.
  void round_weights_otherwise(std::mt19937& random) {
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.role != plan::Role::parameter || buffer.dtype != DType::bf16) continue;
      std::vector<std::byte> bytes(buffer.bytes());
      EXPECT_TRUE(backend_->download(buffer.id, bytes).ok());
      for (std::size_t i = 0; i < bytes.size(); i += 2) {
        if (random() % 4 == 0) bytes[i] ^= std::byte{1};
      }
      EXPECT_TRUE(backend_->upload(buffer.id, bytes).ok());
    }
  }
  /// Issues a step like `step`, but only begins to read its scalars.
  void begin_step(std::int64_t number, bool captured) {
    issues_only_ = true;
    step(number, captured);
    issues_only_ = false;
    EXPECT_TRUE(reader_.begin(static_cast<std::size_t>(number) % Backend::kReadSlots).ok());
  }
  StepScalars end_step(std::int64_t number) {
    auto scalars = reader_.await(static_cast<std::size_t>(number) % Backend::kReadSlots);
    EXPECT_TRUE(scalars.ok());
    return scalars.value();
  }
  StateSnapshot state() {
    auto taken = StateSnapshot::take(plan_, *backend_);
    EXPECT_TRUE(taken.ok());
    return std::move(taken.value());
  }
  Backend& backend() { return *backend_; }
  Executor& executor() { return executor_; }

 private:
  static std::unique_ptr<Run> start(const plan::Plan& plan, std::unique_ptr<Backend> backend) {
    const Status prepared = backend->prepare(plan);
    EXPECT_TRUE(prepared.ok()) << prepared.error().message;
    const Status initialized = backend->initialize();
    EXPECT_TRUE(initialized.ok()) << initialized.error().message;
    return std::make_unique<Run>(plan, std::move(backend));
  }

  const plan::Plan& plan_;
  std::unique_ptr<Backend> backend_;
  Executor executor_;
  ScalarReader reader_;
  bool issues_only_ = false;
};

struct Capture {
  const char* name;
  plan::ModelSpec (*apply)(plan::ModelSpec);
};
const Capture kCaptures[] = {
    {"attn", [](plan::ModelSpec s) { return plan::with_scopes(std::move(s), {"attn"}); }},
    {"attn+mlp",
     [](plan::ModelSpec s) {
       return plan::with_scopes(std::move(s), {"attn", "mlp"});
     }},
    {"layers", [](plan::ModelSpec s) { return plan::with_scopes(std::move(s), {}); }},
    {"iteration", [](plan::ModelSpec s) { return plan::with_full_iteration(std::move(s), false); }},
    {"iteration+optimizer", [](plan::ModelSpec s) { return plan::with_full_iteration(std::move(s), true); }},
};

TEST(DeviceTraining, ReplayHasTheBitsOfEager) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    for (const double dropout : {0.0, 0.1}) {
      for (const Capture& capture : kCaptures) {
        const plan::Plan plan = make_plan(capture.apply(device_llama(dtype, dropout)));
        const auto eager = Run::on_cuda(plan);
        const auto replayed = Run::on_cuda(plan);
        for (int step = 0; step < 52; ++step) {
          const StepScalars a = eager->step(step, false);
          const StepScalars b = replayed->step(step, step >= 2);
          ASSERT_EQ(a.loss, b.loss) << capture.name << " step " << step;
          ASSERT_EQ(a.grad_norm, b.grad_norm) << capture.name << " step " << step;
          ASSERT_EQ(a.nonfinite, 0);
          ASSERT_GT(a.loss, 0.0);
        }
        const auto different = eager->state().find_difference(replayed->state());
        EXPECT_FALSE(different.has_value())
            << capture.name << ": `" << plan.buffers[different.value_or(0)].name << "`";
        EXPECT_TRUE(replayed->executor().captured()) << capture.name;
        for (const CapturedSegment& segment : replayed->executor().captures()) {
          EXPECT_GT(segment.info.nodes, 0U);
          std::uint64_t kernels = 0;
          for (const GraphNode& node : segment.info.listing.nodes) {
            EXPECT_TRUE(node.kind == "kernel" || node.kind == "memset" || node.kind == "memcpy") << node.kind;
            EXPECT_TRUE(node.kind != "kernel" || !node.name.empty());
            kernels += node.kind == "kernel" ? 1 : 0;
          }
          EXPECT_EQ(segment.info.listing.nodes.size(), segment.info.nodes);
          EXPECT_GT(kernels, 0U);
        }
      }
    }
  }
}

TEST(DeviceTraining, FusedPlansReplayAndLearnLikeTheOthers) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan fused = make_plan(plan::with_full_iteration(device_gpt(), true));
  plan::ModelSpec spec = device_gpt();
  spec.backend = "host";
  const plan::Plan unfused = make_plan(spec);
  std::map<plan::OpKind, int> kinds;
  for (const plan::Op& op : fused.ops) ++kinds[op.kind];
  EXPECT_EQ(kinds[plan::OpKind::gemm_add], 4);
  EXPECT_EQ(kinds[plan::OpKind::gemm_gelu], 2);
  EXPECT_EQ(kinds[plan::OpKind::gemm_gelu_backward], 2);
  const auto eager = Run::on_cuda(fused);
  const auto replayed = Run::on_cuda(fused);
  const auto other = Run::on_cuda(unfused);
  for (int step = 0; step < 30; ++step) {
    const StepScalars a = eager->step(step, false);
    const StepScalars b = replayed->step(step, step >= 2);
    const StepScalars c = other->step(step, false);
    ASSERT_EQ(a.loss, b.loss) << step;
    ASSERT_NEAR(a.loss, c.loss, 2e-2 * c.loss) << step;
  }
  EXPECT_FALSE(eager->state().find_difference(replayed->state()).has_value());
}

// As the trainer does: each step is issued while the one before it runs, replayed and eagerly.
TEST(DeviceTraining, AStepAheadHasTheBitsOfWaitingForEach) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan plan = make_plan(plan::with_full_iteration(device_llama(DType::bf16, 0.1), true));
  const auto waiting = Run::on_cuda(plan);
  ASSERT_TRUE(waiting->backend().device().asynchronous);
  for (const bool replays : {false, true}) {
    const auto ahead = Run::on_cuda(plan);
    const auto captured = [&](std::int64_t step) { return replays && step >= 2; };
    std::vector<StepScalars> want;
    if (!replays) {
      for (int step = 0; step < 40; ++step) want.push_back(waiting->step(step, false));
    } else {
      const auto again = Run::on_cuda(plan);
      for (int step = 0; step < 40; ++step) want.push_back(again->step(step, captured(step)));
      EXPECT_FALSE(waiting->state().find_difference(again->state()).has_value());
    }
    for (int step = 0; step < 40; ++step) {
      if (step == 0 || step == 3) ahead->begin_step(step, captured(step));  // nothing else is under way
      if (step != 2 && step != 39) ahead->begin_step(step + 1, captured(step + 1));
      const StepScalars got = ahead->end_step(step);
      const StepScalars& wanted = want[static_cast<std::size_t>(step)];
      ASSERT_EQ(got.loss, wanted.loss) << step;
      ASSERT_EQ(got.grad_norm, wanted.grad_norm) << step;
      ASSERT_EQ(got.step, step + 1);
    }
    EXPECT_FALSE(ahead->state().find_difference(waiting->state()).has_value()) << replays;
  }
}

// What was begun is not touched by what is issued later, whether the buffers lie side by side or far apart.
TEST(DeviceTraining, AReadGivesWhatStoodThereWhenItWasBegun) {
  CAPSTAN_NEED_DEVICE();
  PlanSketch sketch;
  const BufferId near = sketch.buffer("near", DType::f32, {8});
  const BufferId between = sketch.buffer("between", DType::f32, {5000});
  const BufferId far = sketch.buffer("far", DType::f32, {9});
  sketch.op(OpKind::zero, {}, {between});
  DevicePair pair(sketch.finish());
  Backend& cuda = pair.cuda();
  const auto set = [&](float value) {
    pair.set_floats(near, std::vector<float>(8, value));
    pair.set_floats(far, std::vector<float>(9, value + 1));
    pair.set_one(sketch.loss, value + 2);
  };
  for (const std::vector<BufferId>& buffers :
       {std::vector<BufferId>{far, sketch.loss}, std::vector<BufferId>{near, sketch.loss}}) {
    set(10);
    ASSERT_TRUE(cuda.begin_read(buffers, 0).ok());
    set(20);
    ASSERT_TRUE(cuda.begin_read(buffers, 1).ok());
    set(30);
    for (const std::size_t slot : {std::size_t{1}, std::size_t{0}}) {
      const float base = slot == 0 ? 10.0F : 20.0F;
      const bool is_far = buffers[0] == far;
      std::vector<float> want(is_far ? 9 : 8, is_far ? base + 1 : base);
      want.push_back(base + 2);
      std::vector<float> got(want.size());
      ASSERT_TRUE(cuda.await_read(slot, std::as_writable_bytes(std::span(got))).ok());
      EXPECT_EQ(got, want);
    }
  }
  const std::vector<BufferId> large = {between};
  EXPECT_FALSE(cuda.begin_read(large, 0).ok()) << "20000 bytes do not fit a slot";
}

// Only the parameters of the nodes change: the graph that is there takes them over.
TEST(DeviceTraining, ARecordingWithOtherParametersUpdatesTheFirst) {
  CAPSTAN_NEED_DEVICE();
  PlanSketch sketch;
  std::vector<BufferId> buffers;
  for (const char* name : {"a", "b", "c", "d"}) buffers.push_back(sketch.buffer(name, DType::f32, {1000}));
  const OpId first = sketch.op(OpKind::add, {buffers[0], buffers[1]}, {buffers[2]});
  const OpId second = sketch.op(OpKind::add, {buffers[1], buffers[2]}, {buffers[3]});
  const OpId third = sketch.op(OpKind::zero, {}, {buffers[3]});
  DevicePair pair(sketch.finish());
  Backend& cuda = pair.cuda();
  const auto record = [&](const std::vector<OpId>& ops) {
    EXPECT_TRUE(cuda.begin_record(5).ok());
    for (const OpId op : ops) EXPECT_TRUE(cuda.run(op).ok());
    auto info = cuda.end_record();
    EXPECT_TRUE(info.ok());
    EXPECT_TRUE(cuda.replay(5).ok());
    return info.value().updated;
  };
  ASSERT_TRUE(pair.host().run(first).ok());
  ASSERT_TRUE(pair.host().run(second).ok());
  EXPECT_FALSE(record({first}));
  pair.compare(buffers[2], 0.0, "made");
  EXPECT_TRUE(record({second}));
  pair.compare(buffers[3], 0.0, "updated");
  EXPECT_FALSE(record({first, third})) << "another graph";
  const std::vector<double> cleared = to_numbers(pair.bytes_of(cuda, buffers[3]), DType::f32);
  EXPECT_EQ(cleared, std::vector<double>(1000, 0.0));
}

TEST(DeviceTraining, AFaultWhileCapturingNamesTheOp) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan plan = make_plan(plan::with_full_iteration(device_llama(DType::bf16, 0.1), true));
  const auto run = Run::on_cuda(plan);
  run->step(0, false);
  run->executor().fail_at_capture(7);
  const Status captured = run->executor().run_captured();
  ASSERT_FALSE(captured.ok());
  EXPECT_EQ(captured.error().code, "RN022");
  EXPECT_NE(captured.error().message.find("(op 7,"), std::string::npos) << captured.error().message;
  for (const std::string& part : plan.teardown) EXPECT_TRUE(run->backend().tear_down(part).ok()) << part;
}

TEST(DeviceTraining, Fp8ReplaysAndLearnsLikeTheHost) {
  CAPSTAN_NEED_DEVICE();
  plan::ModelSpec spec = device_llama(DType::bf16, 0.0);
  spec.backend = "cuda";
  spec.fp8 = plan::ModelSpec::Fp8::hybrid;
  const plan::Plan plan = make_plan(plan::with_full_iteration(spec, true));
  const auto host = Run::on_host(plan);
  const auto eager = Run::on_cuda(plan);
  const auto replayed = Run::on_cuda(plan);
  double first = 0, last = 0;
  for (int step = 0; step < 30; ++step) {
    const StepScalars a = eager->step(step, false);
    const StepScalars b = replayed->step(step, step >= 2);
    const StepScalars c = host->step(step, false);
    ASSERT_EQ(a.loss, b.loss) << step;
    EXPECT_NEAR(a.loss, c.loss, 3e-2 * c.loss) << step;
    (step == 0 ? first : last) = a.loss;
  }
  EXPECT_LT(last, 0.8 * first);
  EXPECT_FALSE(eager->state().find_difference(replayed->state()).has_value());
}

// 200 steps of real text, byte by byte. What bf16 allows is measured, not guessed: a second host run has the
// last bit of a quarter of its bf16 weights changed before every step, as if they had been rounded otherwise,
// and the device may stray from the host no further than twice as far as that run. Steps have different
// batches, so they are compared in windows of ten.
TEST(DeviceTraining, CurvesOfRealTextAgreeWithTheHost) {
  CAPSTAN_NEED_DEVICE();
  std::ifstream file(CAPSTAN_SOURCE_DIR "/recipes/data/capstan_docs.txt", std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  ASSERT_GT(text.size(), 20000U);
  plan::ModelSpec spec = device_llama(DType::bf16, 0.05);
  spec.dims.vocab = 256;
  spec.optimizer.max_lr = 1e-3;
  spec.backend = "cuda";
  const plan::Plan plan = make_plan(plan::with_full_iteration(spec, true));
  const auto host = Run::on_host(plan);
  const auto jittered = Run::on_host(plan);
  const auto cuda = Run::on_cuda(plan);
  std::mt19937 random(99);
  constexpr int kSteps = 200, kWindow = 10;
  double sums[3] = {}, first[3] = {}, last[3] = {};
  double allowed = 0, worst = 0;
  for (int step = 0; step < kSteps; ++step) {
    jittered->round_weights_otherwise(random);
    const double losses[3] = {host->step_on(text, step, false).loss,
                              jittered->step_on(text, step, false).loss,
                              cuda->step_on(text, step, step >= 3).loss};
    for (int i = 0; i < 3; ++i) {
      sums[i] += losses[i];
      if (step == 0) first[i] = losses[i];
      last[i] = losses[i];
    }
    if ((step + 1) % kWindow != 0) continue;
    allowed = std::max(allowed, std::fabs(sums[1] - sums[0]) / sums[0]);
    worst = std::max(worst, std::fabs(sums[2] - sums[0]) / sums[0]);
    for (double& sum : sums) sum = 0;
  }
  std::printf("200 steps of text: host %.4f -> %.4f, rounded otherwise %.4f -> %.4f, device %.4f -> %.4f\n",
              first[0], last[0], first[1], last[1], first[2], last[2]);
  std::printf("windows of ten: rounded otherwise %.2f %%, device %.2f %% from the host\n", 100 * allowed,
              100 * worst);
  EXPECT_LE(worst, 2 * allowed);
  EXPECT_LT(allowed, 0.03);
  EXPECT_LT(last[2], 0.7 * first[2]);
}

TEST(DeviceTraining, ResumeHasTheBitsOfGoingOn) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan plan = make_plan(plan::with_full_iteration(device_llama(DType::bf16, 0.1), true));
  const auto whole = Run::on_cuda(plan);
  for (int step = 0; step < 10; ++step) whole->step(step, step >= 2);
  const StateSnapshot half_way = whole->state();
  const auto resumed = Run::on_cuda(plan);
  ASSERT_TRUE(half_way.restore(resumed->backend()).ok());
  for (int step = 10; step < 20; ++step) {
    const StepScalars a = whole->step(step, true);
    const StepScalars b = resumed->step(step, step >= 13);
    ASSERT_EQ(a.loss, b.loss) << step;
  }
  EXPECT_FALSE(whole->state().find_difference(resumed->state()).has_value());
}

// The bound on bf16 is on the curve, not on a step: roundings differ from the first step on.
TEST(DeviceTraining, LossFallsAsOnTheHost) {
  CAPSTAN_NEED_DEVICE();
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const plan::Plan plan = make_plan(device_llama(dtype, 0.1));
    const auto host = Run::on_host(plan);
    const auto cuda = Run::on_cuda(plan);
    double first = 0;
    double last = 0;
    for (int step = 0; step < 40; ++step) {
      const StepScalars a = host->step(step, false);
      const StepScalars b = cuda->step(step, false);
      EXPECT_NEAR(a.loss, b.loss, (dtype == DType::f32 ? 1e-3 : 2e-2) * a.loss)
          << plan::dtype_name(dtype) << step;
      EXPECT_NEAR(a.grad_norm, b.grad_norm, (dtype == DType::f32 ? 5e-3 : 6e-2) * a.grad_norm) << step;
      EXPECT_EQ(a.learning_rate, b.learning_rate);
      if (step == 0) first = b.loss;
      last = b.loss;
    }
    EXPECT_LT(last, 0.8 * first);
  }
}

TEST(DeviceTraining, MeasuredMemoryIsThePlannedMemory) {
  CAPSTAN_NEED_DEVICE();
  plan::ModelSpec spec = device_llama(DType::bf16, 0.0);
  spec.backend = "cuda";
  spec.dims = {4, 1024, 16, 16, 64, 4096, 32000, 32000, 1024, 8, 1};
  const plan::Plan plan = make_plan(plan::with_full_iteration(spec, true));
  const auto run = Run::on_cuda(plan);
  const MemoryUse eager = run->backend().memory();
  for (int step = 0; step < 3; ++step) run->step(step, step >= 1);
  const MemoryUse captured = run->backend().memory();
  const auto planned = static_cast<double>(plan.memory.arena);
  RecordProperty("planned_bytes", std::to_string(plan.memory.arena));
  RecordProperty("measured_bytes", std::to_string(captured.peak));
  EXPECT_LE(std::fabs(static_cast<double>(captured.peak) - planned), 0.05 * planned)
      << "planned " << plan.memory.arena << ", measured " << captured.peak;
  EXPECT_LE(static_cast<double>(captured.peak - eager.peak), 0.02 * static_cast<double>(eager.peak));
}

TEST(DeviceTraining, PlanLargerThanTheDeviceIsRefused) {
  CAPSTAN_NEED_DEVICE();
  auto backend = make_cuda_backend();
  ASSERT_TRUE(backend.ok());
  plan::Plan plan = make_plan(device_llama(DType::f32, 0.0));
  plan.memory.arena = backend.value()->device().total_bytes + 1;
  const Status prepared = backend.value()->prepare(plan);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().code, "RN020");
}

TEST(DeviceTraining, TearDownWithAStepAndAReadUnderWay) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan plan = make_plan(plan::with_full_iteration(device_llama(DType::bf16, 0.1), true));
  for (const bool in_order : {true, false}) {
    const auto run = Run::on_cuda(plan);
    run->step(0, false);
    run->step(1, true);
    run->begin_step(2, true);
    run->begin_step(3, true);
    std::vector<std::string> parts = plan.teardown;
    if (!in_order) std::rotate(parts.begin(), std::find(parts.begin(), parts.end(), "streams"), parts.end());
    for (const std::string& part : parts) EXPECT_TRUE(run->backend().tear_down(part).ok()) << part;
  }
}

// Whatever state it is in, tearing down in the plan's order works, also with a capture under way, and twice.
TEST(DeviceTraining, TearDownInTheMiddleOfACapture) {
  CAPSTAN_NEED_DEVICE();
  const plan::Plan plan = make_plan(device_llama(DType::bf16, 0.1));
  auto backend = make_cuda_backend();
  ASSERT_TRUE(backend.ok());
  ASSERT_TRUE(backend.value()->prepare(plan).ok());
  ASSERT_TRUE(backend.value()->initialize().ok());
  ASSERT_TRUE(backend.value()->begin_record(7).ok());
  ASSERT_TRUE(backend.value()->run(1).ok());
  for (int turn = 0; turn < 2; ++turn) {
    for (const std::string& part : plan.teardown) EXPECT_TRUE(backend.value()->tear_down(part).ok()) << part;
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
