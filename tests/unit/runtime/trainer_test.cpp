// The training loop on a device that works on its own: which step is issued when, where the loop waits, and
// that the bits, the checkpoints and the failures are those of the host, which is waited for at every step.
#include "runtime/execute/trainer.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "compiler/plan/json.h"
#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device/host_backend.h"
#include "runtime/execute/interrupt.h"
#include "tests/support/model_specs.h"
#include "tests/unit/runtime/process.h"

namespace capstan::runtime::testing {
namespace {

/// The host backend as a device whose work is always behind: what is issued runs when something waits for it,
/// no further than that needs. Its log has, in order, one word for
///   iN / aN  the read of step N's scalars begun / awaited (N counts from 1)
///   w, d     an upload of anything but the batch, a download; several in a row are one word
///   r, s     a recording begun, a wait for everything
class LateBackend final : public Backend {
 public:
  std::string log;
  std::function<void(int step)> on_issued = [](int) {};
  std::chrono::steady_clock::time_point first_issued, last_awaited;
  std::chrono::milliseconds delay{0};          ///< of each read that is awaited
  int refused_replay = 0, failing_replay = 0;  ///< which one is refused when issued, or fails when it runs

  LateBackend() : info_(inner_->device()) { info_.asynchronous = true; }

  const DeviceInfo& device() const override { return info_; }
  Status prepare(const plan::Plan& plan) override {
    batch_ = plan.buffer(plan::names::kBatchTokens).id;
    return inner_->prepare(plan);
  }
  Status initialize() override { return inner_->initialize(); }
  Status upload(plan::BufferId buffer, std::span<const std::byte> bytes) override {
    if (buffer != batch_) note("w");
    return defer([this, buffer, kept = std::vector(bytes.begin(), bytes.end())] {
      return inner_->upload(buffer, kept);
    });
  }
  Status download(plan::BufferId buffer, std::span<std::byte> bytes) override {
    note("d");
    if (Status ran = catch_up(); !ran.ok()) return ran;
    return inner_->download(buffer, bytes);
  }
  Status begin_read(std::span<const plan::BufferId> buffers, std::size_t slot) override {
    step_in_.at(slot) = ++steps_;
    note("i" + std::to_string(steps_));
    Status deferred = defer([this, slot, kept = std::vector(buffers.begin(), buffers.end())] {
      return inner_->begin_read(kept, slot);
    });
    end_of_.at(slot) = issued_;
    on_issued(steps_);
    return deferred;
  }
  Status await_read(std::size_t slot, std::span<std::byte> bytes) override {
    note("a" + std::to_string(step_in_.at(slot)));
    if (Status ran = catch_up(end_of_.at(slot)); !ran.ok()) return ran;
    std::this_thread::sleep_for(delay);
    last_awaited = std::chrono::steady_clock::now();
    return inner_->await_read(slot, bytes);
  }
  Status run(plan::OpId op) override {
    if (recording_) return inner_->run(op);
    return defer([this, op] { return inner_->run(op); });
  }
  Status begin_record(std::uint32_t key) override {
    note("r");
    if (Status ran = catch_up(); !ran.ok()) return ran;
    recording_ = true;
    return inner_->begin_record(key);
  }
  Outcome<RecordingInfo> end_record() override {
    recording_ = false;
    return inner_->end_record();
  }
  Status replay(std::uint32_t key) override {
    ++replays_;
    const Status fault = run_problem("RN022", "a launch failed");
    if (replays_ == refused_replay) return fault;
    if (replays_ == failing_replay) return defer([fault] { return fault; });
    return defer([this, key] { return inner_->replay(key); });
  }
  Status drop_recording(std::uint32_t key) override {
    return after_all([&] { return inner_->drop_recording(key); });
  }
  Status reserve_digests(std::size_t count) override {
    return after_all([&] { return inner_->reserve_digests(count); });
  }
  Status run_digest(plan::OpId op, std::size_t slot) override {
    if (recording_) return inner_->run_digest(op, slot);
    return defer([this, op, slot] { return inner_->run_digest(op, slot); });
  }
  Status read_digests(std::span<std::uint64_t> slots) override {
    return after_all([&] { return inner_->read_digests(slots); });
  }
  void fail_next_op() override { inner_->fail_next_op(); }
  Status synchronize() override {
    note("s");
    return catch_up();
  }
  Status start_timer() override { return inner_->start_timer(); }
  Outcome<double> stop_timer() override { return inner_->stop_timer(); }
  MemoryUse memory() const override { return inner_->memory(); }
  Status tear_down(std::string_view part) override { return inner_->tear_down(part); }

 private:
  void note(const std::string& word) {
    const bool again = word.size() == 1 && !log.empty() && log.back() == word[0];
    if (!again) log += (log.empty() ? "" : " ") + word;
  }
  Status defer(std::function<Status()> work) {
    if (issued_ == 0) first_issued = std::chrono::steady_clock::now();
    queue_.push_back(std::move(work));
    ++issued_;
    return {};
  }
  Status catch_up(std::size_t until = static_cast<std::size_t>(-1)) {
    for (; ran_ < until && !queue_.empty(); ++ran_) {
      const std::function<Status()> work = std::move(queue_.front());
      queue_.pop_front();
      if (Status done = work(); !done.ok()) return done;
    }
    return {};
  }
  template <typename Call>
  Status after_all(Call call) {
    if (Status ran = catch_up(); !ran.ok()) return ran;
    return call();
  }

  std::unique_ptr<Backend> inner_ = make_host_backend(1);
  DeviceInfo info_;
  plan::BufferId batch_ = 0;
  std::deque<std::function<Status()>> queue_;
  std::size_t issued_ = 0, ran_ = 0;
  std::array<std::size_t, kReadSlots> end_of_{};  ///< by slot: what must have run
  std::array<int, kReadSlots> step_in_{};
  int steps_ = 0, replays_ = 0;
  bool recording_ = false;
};

struct Trained {
  std::string code, message;  ///< of the failure; empty: none
  RunReport report;
  std::string report_text;
  std::vector<std::string> modes;
  double logged_ms = 0;  ///< all steps together
};

class TrainerTest : public ::testing::Test {
 protected:
  Folder folder;

  static plan::ModelSpec captured_spec(std::int64_t steps, std::int64_t save_every) {
    plan::ModelSpec spec = plan::with_full_iteration(plan::small_llama(), true);
    spec.schedule.train_steps = steps;
    spec.schedule.save_every = save_every;
    spec.optimizer.max_lr = 1e-2;
    return spec;  // 3 steps of warm-up, then the capture step
  }

  std::string checkpoint(const std::string& name, std::uint64_t step) const {
    return checkpoint_path(folder.file(name) + "/checkpoints", step);
  }

  static RunOptions two_ahead() {
    RunOptions options;
    options.steps_ahead = 2;
    return options;
  }

  Trained train(const plan::ModelSpec& spec, Backend& backend, const std::string& name,
                RunOptions options = two_ahead()) {
    plan::Plan plan = plan::lower(spec);
    const plan::PassResult passed = plan::run_passes(plan, spec);
    EXPECT_TRUE(passed.ok()) << passed.fault;
    const Outcome<LoadedPlan> loaded = read_plan(plan::write_json(plan));
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    std::filesystem::create_directories(folder.file(name) + "/checkpoints");
    EXPECT_TRUE(backend.prepare(loaded.value().plan).ok());
    EXPECT_TRUE(backend.initialize().ok());
    options.quiet = true;
    Executor executor(loaded.value().plan, backend);
    const auto tokens = make_random_tokens(spec.data.seed, spec.dims.vocab);
    const Sampler sampler(loaded.value().plan, *tokens);
    Trained trained;
    RunReport& report = trained.report;
    report.plan = &loaded.value().plan;
    report.device = backend.device();
    report.status = "finished";
    report.target_steps = options.steps.value_or(spec.schedule.train_steps);
    if (options.verify_every > 0) report.verification.emplace().every = options.verify_every;
    const DataIdentity identity = tokens->identity();
    capstan::runtime::Run run{loaded.value(), options,  backend,           executor,
                              sampler,        identity, folder.file(name), report};
    const Status outcome = capstan::runtime::train(run);
    if (!outcome.ok()) {
      trained.code = outcome.error().code;
      trained.message = outcome.error().message;
    }
    trained.report_text = to_json(report);
    report.plan = nullptr;
    std::ifstream metrics(folder.file(name) + "/metrics.jsonl");
    for (std::string line; std::getline(metrics, line);) {
      const auto entry = nlohmann::json::parse(line);
      trained.modes.push_back(entry["mode"]);
      trained.logged_ms += entry["step_ms"].get<double>();
    }
    return trained;
  }

  /// The same on the plain host backend, and that both did the same.
  void expect_as_on_the_host(const plan::ModelSpec& spec, const Trained& late, RunOptions options = {}) {
    const auto host = make_host_backend(1);
    const Trained want = train(spec, *host, "host", std::move(options));
    EXPECT_EQ(late.code, want.code);
    EXPECT_EQ(late.message, want.message);
    EXPECT_EQ(late.report.steps_done, want.report.steps_done);
    EXPECT_EQ(late.report.status, want.report.status);
    EXPECT_EQ(late.report.loss.count, want.report.loss.count);
    EXPECT_EQ(late.report.loss.digest, want.report.loss.digest);
    EXPECT_EQ(late.modes, want.modes);
    ASSERT_EQ(late.report.checkpoints.size(), want.report.checkpoints.size());
    for (std::size_t i = 0; i < want.report.checkpoints.size(); ++i) {
      const std::string bytes = read_whole(want.report.checkpoints[i]);
      EXPECT_FALSE(bytes.empty());
      EXPECT_EQ(read_whole(late.report.checkpoints[i]), bytes) << late.report.checkpoints[i];
    }
    EXPECT_EQ(want.report.eager_issue_us.count + want.report.captured_issue_us.count, 0);
    EXPECT_NE(want.report_text.find("\"host_issue_us\": null"), std::string::npos);
  }
};

TEST_F(TrainerTest, IssuesAStepAheadAndWaitsBeforeCaptureAndCheckpoints) {
  const plan::ModelSpec spec = captured_spec(10, 4);
  LateBackend backend;
  const Trained late = train(spec, backend, "late");
  EXPECT_EQ(backend.log,
            "i1 i2 a1 i3 a2 a3 r i4 a4 d "  // the capture step alone, and a checkpoint after it
            "i5 i6 a5 i7 a6 i8 a7 a8 d "
            "i9 i10 a9 a10 d");
  expect_as_on_the_host(spec, late);
  EXPECT_EQ(late.report.eager_issue_us.count, 3);
  EXPECT_EQ(late.report.captured_issue_us.count, 6);
  EXPECT_EQ(late.report.captured_step_ms.count, 6);
  const auto speed = nlohmann::json::parse(late.report_text)["speed"];
  EXPECT_EQ(speed["captured"]["host_issue_us"]["count"], 6);
}

// A step's time begins when the one before it is done: none counts twice, and none is left out.
TEST_F(TrainerTest, TheTimesOfStepsAddUpToTheTimeOfTheRun) {
  LateBackend backend;
  const Trained late = train(captured_spec(60, 0), backend, "late");
  const double span =
      std::chrono::duration<double, std::milli>(backend.last_awaited - backend.first_issued).count();
  EXPECT_LT(late.logged_ms, 1.2 * span);
  EXPECT_GT(late.logged_ms, 0.7 * span);
}

TEST_F(TrainerTest, StepsAreIssuedSeveralInARow) {
  const plan::ModelSpec spec = captured_spec(30, 14);
  RunOptions options;
  options.steps_ahead = 8;
  LateBackend backend;
  const Trained late = train(spec, backend, "late", options);
  EXPECT_EQ(backend.log,
            "i1 i2 i3 a1 a2 a3 r i4 a4 "
            "i5 i6 i7 i8 i9 i10 i11 i12 a5 a6 a7 a8 i13 i14 a9 a10 a11 a12 a13 a14 d "
            "i15 i16 i17 i18 i19 i20 i21 i22 a15 a16 a17 a18 i23 i24 i25 i26 a19 a20 a21 a22 "
            "i27 i28 a23 a24 a25 a26 a27 a28 d i29 i30 a29 a30 d");
  expect_as_on_the_host(spec, late);
}

TEST_F(TrainerTest, HowManyStepsAreIssuedAheadFollowsTheirTime) {
  plan::ModelSpec spec = plan::small_llama();
  spec.schedule.train_steps = 5;
  LateBackend slow;
  slow.delay = std::chrono::milliseconds(510);
  train(spec, slow, "slow", RunOptions{});
  EXPECT_EQ(slow.log, "i1 i2 a1 i3 a2 i4 a3 i5 a4 a5 d");
  LateBackend fast;
  train(captured_spec(14, 0), fast, "fast", RunOptions{});
  EXPECT_NE(fast.log.find("r i4 a4 i5 i6 i7 i8 i9 i10 i11 i12 a5 a6 a7 a8 i13 i14 a9"), std::string::npos)
      << fast.log;
  // Many launches a step fill the device's queue.
  spec.dims.micro_batches = 8;
  LateBackend full;
  train(spec, full, "full", RunOptions{});
  EXPECT_EQ(full.log, slow.log);
}

TEST_F(TrainerTest, AVerifiedStepIsAlone) {
  const plan::ModelSpec spec = captured_spec(9, 0);
  RunOptions options = two_ahead();
  options.verify_every = 3;
  LateBackend backend;
  const Trained late = train(spec, backend, "late", options);
  EXPECT_EQ(backend.log,
            "i1 i2 a1 i3 a2 a3 r i4 a4 i5 a5 "
            "d w r w d i6 a6 "  // state, run, state, run again from recordings, and from those of training
            "i7 i8 a7 a8 d w d i9 a9 d");
  EXPECT_EQ(late.report.verification->checked, 2);
  expect_as_on_the_host(spec, late, options);
}

TEST_F(TrainerTest, WhatWasIssuedBehindAFatalStepIsNoStepOfTheRun) {
  plan::ModelSpec spec = plan::small_llama();
  spec.schedule.train_steps = 12;
  spec.schedule.save_every = 5;
  spec.check_loss = true;
  RunOptions options = two_ahead();
  options.drill.kind = Drill::Kind::nan;
  options.drill.step = 7;
  LateBackend backend;
  const Trained late = train(spec, backend, "late", options);
  EXPECT_EQ(backend.log, "i1 i2 a1 i3 a2 i4 a3 i5 a4 a5 d i6 w i7 a6 i8 a7 s");
  EXPECT_EQ(late.code, "RN030");
  EXPECT_NE(late.message.find("the loss of step 7 is nan"), std::string::npos) << late.message;
  EXPECT_EQ(late.report.steps_done, 7);
  EXPECT_EQ(late.modes.size(), 7u);
  EXPECT_EQ(late.report.checkpoints, std::vector<std::string>{checkpoint("late", 5)});
  expect_as_on_the_host(spec, late, options);
}

TEST_F(TrainerTest, AStepThatIsRefusedLeavesTheOneBeforeItDone) {
  LateBackend backend;
  backend.refused_replay = 3;  // of step 6, while step 5 is under way
  const Trained late = train(captured_spec(10, 0), backend, "late");
  EXPECT_EQ(backend.log, "i1 i2 a1 i3 a2 a3 r i4 a4 i5 a5");
  EXPECT_EQ(late.code, "RN022");
  EXPECT_EQ(late.report.steps_done, 5);
  EXPECT_EQ(late.modes.size(), 5u);
  EXPECT_TRUE(late.report.checkpoints.empty());
}

TEST_F(TrainerTest, AnErrorOfTheDeviceEndsTheRunAtTheStepThatShowsIt) {
  LateBackend backend;
  backend.failing_replay = 3;
  const Trained late = train(captured_spec(10, 0), backend, "late");
  EXPECT_EQ(backend.log, "i1 i2 a1 i3 a2 a3 r i4 a4 i5 i6 a5 i7 a6");
  EXPECT_EQ(late.code, "RN022");
  EXPECT_EQ(late.report.steps_done, 5);
  EXPECT_EQ(late.modes.size(), 5u);
  EXPECT_TRUE(late.report.checkpoints.empty());
}

using TrainerDeathTest = TrainerTest;

// In a process of its own, since a signal that was seen stays seen.
TEST_F(TrainerDeathTest, ASignalLetsBothStepsEndAndSavesAfterThem) {
  EXPECT_EXIT(
      {
        install_signal_handlers();
        LateBackend backend;
        backend.on_issued = [](int step) {
          if (step == 6) std::raise(SIGTERM);
        };
        const Trained late = train(captured_spec(20, 0), backend, "late");
        const std::string seen = backend.log + ", " + late.report.status + " at " +
                                 std::to_string(late.report.steps_done) + " with " +
                                 std::to_string(late.modes.size());
        std::fputs(seen.c_str(), stderr);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "i1 i2 a1 i3 a2 a3 r i4 a4 i5 i6 a5 a6 d, interrupted at 6 with 6");
  RunOptions options;
  options.steps = 6;
  const auto host = make_host_backend(1);
  const Trained want = train(captured_spec(20, 0), *host, "host", options);
  ASSERT_EQ(want.report.checkpoints.size(), 1u);
  EXPECT_EQ(read_whole(checkpoint("late", 6)), read_whole(want.report.checkpoints[0]));
}

// Recorded steps heed the wish as those do that are issued op by op; the steps before it are not saved anew.
TEST_F(TrainerDeathTest, AnOverdueSignalGivesUpAReplayedStep) {
  EXPECT_EXIT(
      {
        install_signal_handlers(std::chrono::milliseconds(0));
        LateBackend backend;
        backend.on_issued = [](int step) {
          if (step == 6) std::raise(SIGTERM);
        };
        const Trained late = train(captured_spec(20, 2), backend, "late");
        const std::string seen = late.code + " at " + std::to_string(late.report.steps_done) + ", saved " +
                                 std::to_string(late.report.checkpoints.size());
        std::fputs(seen.c_str(), stderr);
        std::_Exit(0);
      },
      ::testing::ExitedWithCode(0), "RN033 at 4, saved 2");
}

TEST(Backend, AReadGivesWhatStoodThereWhenItWasBegun) {
  plan::Plan plan = plan::lower(plan::small_llama());
  ASSERT_TRUE(plan::run_passes(plan, plan::small_llama()).ok());
  const auto backend = make_host_backend(1);
  ASSERT_TRUE(backend->prepare(plan).ok());
  ASSERT_TRUE(backend->initialize().ok());
  const std::array<plan::BufferId, 2> buffers = {plan.buffer(plan::names::kStep).id,
                                                 plan.buffer(plan::names::kLoss).id};
  const auto set = [&](std::int64_t step, float loss) {
    ASSERT_TRUE(backend->upload(buffers[0], std::as_bytes(std::span(&step, 1))).ok());
    ASSERT_TRUE(backend->upload(buffers[1], std::as_bytes(std::span(&loss, 1))).ok());
  };
  set(7, 1.5F);
  ASSERT_TRUE(backend->begin_read(buffers, 0).ok());
  set(8, 2.5F);
  ASSERT_TRUE(backend->begin_read(buffers, 1).ok());
  set(9, 3.5F);
  for (const std::size_t slot : {std::size_t{0}, std::size_t{1}}) {
    std::array<std::byte, 12> bytes;
    ASSERT_TRUE(backend->await_read(slot, bytes).ok());
    std::int64_t step = 0;
    float loss = 0;
    std::memcpy(&step, bytes.data(), sizeof(step));
    std::memcpy(&loss, bytes.data() + sizeof(step), sizeof(loss));
    EXPECT_EQ(step, slot == 0 ? 7 : 8);
    EXPECT_EQ(loss, slot == 0 ? 1.5F : 2.5F);
  }
}

}  // namespace
}  // namespace capstan::runtime::testing
