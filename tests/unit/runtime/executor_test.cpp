// Order of issue, errors of a device on their way to the report, and teardown under a watchdog.
#include "runtime/execute/executor.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <thread>

#include <gtest/gtest.h>

#include "runtime/device/digest.h"
#include "runtime/device/host_backend.h"
#include "runtime/execute/compare.h"
#include "runtime/execute/teardown.h"
#include "tests/support/tiny_plan.h"
#include "tests/unit/runtime/plan_sketch.h"

namespace capstan::runtime::testing {
namespace {

/// The host backend, with a fault where the test wants one.
class FaultyBackend final : public Backend {
 public:
  std::function<Status(plan::OpId, bool recording)> on_run = [](plan::OpId, bool) { return Status(); };
  std::function<Status(std::string_view)> on_tear_down = [](std::string_view) { return Status(); };
  std::vector<plan::OpId> ran;  ///< executed or recorded, in order
  std::vector<std::string> torn_down;

  const DeviceInfo& device() const override { return inner_->device(); }
  Status prepare(const plan::Plan& plan) override { return inner_->prepare(plan); }
  Status initialize() override { return inner_->initialize(); }
  Status upload(plan::BufferId buffer, std::span<const std::byte> bytes) override {
    return inner_->upload(buffer, bytes);
  }
  Status download(plan::BufferId buffer, std::span<std::byte> bytes) override {
    return inner_->download(buffer, bytes);
  }
  Status begin_read(std::span<const plan::BufferId> buffers, std::size_t slot) override {
    return inner_->begin_read(buffers, slot);
  }
  Status await_read(std::size_t slot, std::span<std::byte> bytes) override {
    return inner_->await_read(slot, bytes);
  }
  Status run(plan::OpId op) override {
    ran.push_back(op);
    if (Status faulty = on_run(op, recording_); !faulty.ok()) return faulty;
    return inner_->run(op);
  }
  Status begin_record(std::uint32_t key) override {
    recording_ = true;
    return inner_->begin_record(key);
  }
  Outcome<RecordingInfo> end_record() override {
    recording_ = false;
    return inner_->end_record();
  }
  Status replay(std::uint32_t key) override { return inner_->replay(key); }
  Status drop_recording(std::uint32_t key) override { return inner_->drop_recording(key); }
  Status reserve_digests(std::size_t count) override { return inner_->reserve_digests(count); }
  Status run_digest(plan::OpId op, std::size_t slot) override { return inner_->run_digest(op, slot); }
  Status read_digests(std::span<std::uint64_t> slots) override { return inner_->read_digests(slots); }
  void fail_next_op() override { inner_->fail_next_op(); }
  Status synchronize() override { return inner_->synchronize(); }
  Status start_timer() override { return inner_->start_timer(); }
  Outcome<double> stop_timer() override { return inner_->stop_timer(); }
  MemoryUse memory() const override { return inner_->memory(); }
  Status tear_down(std::string_view part) override {
    torn_down.emplace_back(part);
    if (Status faulty = on_tear_down(part); !faulty.ok()) return faulty;
    return inner_->tear_down(part);
  }

 private:
  std::unique_ptr<Backend> inner_ = make_host_backend(1);
  bool recording_ = false;
};

std::vector<plan::OpId> range(plan::OpId first, plan::OpId end, int times = 1) {
  std::vector<plan::OpId> ids;
  for (int i = 0; i < times; ++i) {
    for (plan::OpId op = first; op < end; ++op) ids.push_back(op);
  }
  return ids;
}

TEST(Executor, RepeatsTheMicroBatchGroup) {
  const plan::Plan plan = plan::make_tiny_plan(false);  // segments: step begin, micro-batch, step end
  FaultyBackend backend;
  ASSERT_TRUE(backend.prepare(plan).ok());
  ASSERT_TRUE(backend.initialize().ok());
  Executor executor(plan, backend);
  EXPECT_FALSE(executor.has_graphs());
  ASSERT_TRUE(executor.run_eager().ok());
  const plan::OpId begin = plan.segments[1].first_op, end = plan.segments[1].end_op,
                   all = static_cast<plan::OpId>(plan.ops.size());
  std::vector<plan::OpId> want = range(0, begin), group = range(begin, end, 2), last = range(end, all);
  want.insert(want.end(), group.begin(), group.end());
  want.insert(want.end(), last.begin(), last.end());
  EXPECT_EQ(backend.ran, want);
  EXPECT_EQ(executor.launches(false), want.size());
}

TEST(Executor, UnrollsAWholeIterationTheSameWay) {
  plan::Plan plan = plan::make_tiny_plan(true);
  const std::vector<plan::Segment> parts = plan.segments;
  plan.segments = {parts[1]};
  plan.segments[0].id = 0;
  plan.segments[0].first_op = 0;
  plan.segments[0].end_op = static_cast<plan::OpId>(plan.ops.size());
  plan.segments[0].whole_iteration = true;
  const auto order = segment_order(plan, plan.segments[0]);
  const std::size_t group = parts[1].end_op - parts[1].first_op;
  ASSERT_EQ(order.size(), plan.ops.size() + group);
  EXPECT_EQ(order[parts[1].first_op].micro_batch, 0);
  EXPECT_EQ(order[parts[1].first_op + group].op, parts[1].first_op);
  EXPECT_EQ(order[parts[1].first_op + group].micro_batch, 1);
  EXPECT_EQ(order.back().op, plan.ops.size() - 1);
  EXPECT_EQ(order.back().micro_batch, -1);
}

TEST(Executor, CapturesOnceAndDoesNotExecuteWhileItCaptures) {
  const plan::Plan plan = plan::make_tiny_plan(true);
  FaultyBackend backend;
  ASSERT_TRUE(backend.prepare(plan).ok());
  ASSERT_TRUE(backend.initialize().ok());
  Executor executor(plan, backend);
  const auto steps_done = [&] {
    std::int64_t value = 0;
    EXPECT_TRUE(
        backend.download(plan.buffer("rng_counter").id, std::as_writable_bytes(std::span(&value, 1))).ok());
    return value;
  };
  ASSERT_TRUE(executor.run_captured().ok());
  EXPECT_EQ(steps_done(), 2);  // two micro-batches replayed, none executed by capturing
  const std::size_t issued = backend.ran.size();
  ASSERT_TRUE(executor.run_captured().ok());
  EXPECT_EQ(steps_done(), 4);
  EXPECT_EQ(executor.captures().size(), 1u);
  EXPECT_EQ(executor.captures()[0].info.nodes, plan.segments[1].end_op - plan.segments[1].first_op);
  EXPECT_EQ(backend.ran.size() - issued,
            plan.ops.size() - executor.captures()[0].info.nodes);       // eager segments only
  EXPECT_EQ(executor.launches(true), backend.ran.size() - issued + 2);  // the recording once a micro-batch
}

TEST(Executor, PassesDeviceErrorsOnAndCanBeTornDownAfterwards) {
  const plan::Plan plan = plan::make_tiny_plan(true);
  for (const char* code : {"RN022", "RN023"}) {
    FaultyBackend backend;
    ASSERT_TRUE(backend.prepare(plan).ok());
    ASSERT_TRUE(backend.initialize().ok());
    const bool in_capture = std::string(code) == "RN023";
    backend.on_run = [&](plan::OpId op, bool recording) {
      return op == 5 && recording == in_capture ? Status(run_problem(code, "a kernel failed")) : Status();
    };
    Executor executor(plan, backend);
    const Status outcome = in_capture ? executor.run_captured() : executor.run_eager();
    ASSERT_FALSE(outcome.ok());
    EXPECT_EQ(outcome.error().code, code);
    EXPECT_TRUE(tear_down(plan, backend, std::chrono::seconds(5)).ok());
    EXPECT_EQ(backend.torn_down, plan.teardown);
  }
}

TEST(Teardown, ReleasesTheRestAfterAFailureAndReportsTheFirst) {
  const plan::Plan plan = plan::make_tiny_plan(true);
  FaultyBackend backend;
  ASSERT_TRUE(backend.prepare(plan).ok());
  backend.on_tear_down = [](std::string_view part) {
    return part == "libraries" ? Status(run_problem("RN022", "the library does not close")) : Status();
  };
  const Status outcome = tear_down(plan, backend, std::chrono::seconds(5));
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().message, "the library does not close");
  EXPECT_EQ(backend.torn_down, plan.teardown);
}

TEST(TeardownDeathTest, AHungDeviceEndsTheProcessInTime) {
  const plan::Plan plan = plan::make_tiny_plan(true);
  const auto hang = [&] {
    FaultyBackend backend;
    (void)backend.prepare(plan).ok();
    backend.on_tear_down = [](std::string_view part) {
      if (part == "streams") std::this_thread::sleep_for(std::chrono::seconds(60));
      return Status();
    };
    (void)tear_down(plan, backend, std::chrono::seconds(1)).ok();
  };
  EXPECT_EXIT(hang(), ::testing::ExitedWithCode(4),
              "error\\[RN034\\] the device did not release its `streams` within 1 s");
}

TEST(HostBackend, RefusesAPlanThatDoesNotFitAndF16) {
  PlanSketch sketch;
  plan::Plan large = sketch.finish();
  large.memory.arena = std::uint64_t{1} << 50;
  const auto backend = make_host_backend(1);
  const Status too_large = backend->prepare(large);
  ASSERT_FALSE(too_large.ok());
  EXPECT_EQ(too_large.error().code, "RN020");
  EXPECT_NE(too_large.error().message.find("1125899906842624"), std::string::npos);
  sketch.buffer("half", DType::f16, {4});
  const plan::Plan half = sketch.finish();
  const Status refused = make_host_backend(1)->prepare(half);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, "RN024");
}

TEST(HostBackend, DigestsLeaveWorkspacesOut) {
  const plan::Plan plan = plan::make_tiny_plan(false);
  const auto backend = make_host_backend(1);
  ASSERT_TRUE(backend->prepare(plan).ok());
  ASSERT_TRUE(backend->initialize().ok());
  ASSERT_TRUE(backend->reserve_digests(2).ok());
  const plan::Op* norm = nullptr;  // outputs: the norm, the flags, a workspace
  for (const plan::Op& op : plan.ops) norm = op.kind == OpKind::grad_norm ? &op : norm;
  ASSERT_NE(norm, nullptr);
  ASSERT_TRUE(backend->run_digest(norm->id, 0).ok());
  const plan::Buffer& partial = plan.buffers[norm->outputs[2]];
  ASSERT_EQ(partial.role, plan::Role::workspace);
  ASSERT_TRUE(backend->upload(partial.id, std::vector<std::byte>(partial.bytes(), std::byte{7})).ok());
  ASSERT_TRUE(backend->run_digest(norm->id, 1).ok());
  std::vector<std::uint64_t> digests(2);
  ASSERT_TRUE(backend->read_digests(digests).ok());
  EXPECT_EQ(digests[0], digests[1]);
  const float changed = 1;
  ASSERT_TRUE(backend->upload(norm->outputs[0], std::as_bytes(std::span(&changed, 1))).ok());
  ASSERT_TRUE(backend->run_digest(norm->id, 1).ok());
  ASSERT_TRUE(backend->read_digests(digests).ok());
  EXPECT_NE(digests[0], digests[1]);
}

TEST(Digest, SeesEveryByteAndEveryPlace) {
  std::vector<std::byte> bytes(1003);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7);
  const std::uint64_t whole = digest_bytes(bytes, 0);
  for (std::size_t i = 0; i < bytes.size(); i += 13) {
    auto changed = bytes;
    changed[i] ^= std::byte{1};
    EXPECT_NE(digest_bytes(changed, 0), whole) << i;
  }
  EXPECT_NE(digest_bytes(bytes, 1), whole);
  std::swap_ranges(bytes.begin(), bytes.begin() + 4, bytes.begin() + 8);
  EXPECT_NE(digest_bytes(bytes, 0), whole);
  // In parts, as the backends compute it.
  const std::span<const std::byte> all(bytes);
  EXPECT_EQ(digest_bytes(all.first(400), 0) + digest_bytes(all.subspan(400), 100), digest_bytes(all, 0));
}

TEST(Verdict, SaysWhenReplayBringsNothing) {
  const auto spread = [](double median, double half_width) {
    Spread s;
    s.count = 10;
    s.median = median;
    s.quartile1 = median - half_width;
    s.quartile3 = median + half_width;
    return s;
  };
  EXPECT_NE(speed_verdict(spread(20, 0.1), spread(15, 0.1)).find("25.0 % faster"), std::string::npos);
  EXPECT_NE(speed_verdict(spread(20, 0.1), spread(20.1, 0.1)).find("within the spread"), std::string::npos);
  EXPECT_NE(speed_verdict(spread(20, 3), spread(19, 3)).find("within the spread"), std::string::npos);
  EXPECT_NE(speed_verdict(spread(20, 0.1), spread(25, 0.1)).find("25.0 % slower"), std::string::npos);
}

TEST(Spread, IsMeanMedianAndQuartiles) {
  const Spread s = spread_of({6, 1, 4, 2, 3});
  EXPECT_DOUBLE_EQ(s.mean, 3.2);
  EXPECT_EQ(s.median, 3);
  EXPECT_EQ(s.quartile1, 2);
  EXPECT_EQ(s.quartile3, 4);
  EXPECT_EQ(s.minimum, 1);
  EXPECT_EQ(s.maximum, 6);
  EXPECT_EQ(spread_of({1, 2}).median, 1.5);
  EXPECT_EQ(spread_of({}).count, 0);
}

}  // namespace
}  // namespace capstan::runtime::testing
