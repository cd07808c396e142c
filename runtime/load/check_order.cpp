#include "runtime/load/check_order.h"

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

using plan::DType;
using plan::Role;

std::optional<std::string> check_named_buffers(const plan::Plan& plan) {
  namespace names = plan::names;
  const plan::Dims& dims = plan.dims;
  struct Wanted {
    const char* name;
    DType dtype;
    DType or_dtype;
    Role role;
    std::vector<std::int64_t> shape;
  };
  const Wanted wanted[] = {
      {names::kBatchTokens,
       DType::i32,
       DType::i32,
       Role::input,
       {dims.micro_batches, dims.micro_batch, dims.seq_length + 1}},
      {names::kStep, DType::i64, DType::i64, Role::scalar, {1}},
      {names::kMicroBatchIndex, DType::i64, DType::i64, Role::scalar, {1}},
      {names::kRngCounter, DType::u64, DType::u64, Role::scalar, {1}},
      {names::kLearningRate, DType::f32, DType::f64, Role::scalar, {1}},
      {names::kLoss, DType::f32, DType::f64, Role::scalar, {1}},
      {names::kGradNorm, DType::f32, DType::f64, Role::scalar, {1}},
      {names::kNonfinite, DType::i32, DType::i32, Role::scalar, {1}},
  };
  for (const Wanted& want : wanted) {
    const plan::Buffer* buffer = plan.find_buffer(want.name);
    if (buffer == nullptr) return fmt::format("the plan has no buffer `{}`", want.name);
    if ((buffer->dtype != want.dtype && buffer->dtype != want.or_dtype) || buffer->role != want.role ||
        buffer->shape != want.shape) {
      return fmt::format(
          "the buffer `{}` of the plan has not the dtype, role and shape that the format gives it",
          want.name);
    }
  }
  return std::nullopt;
}

/// What the runtime lists for a step, and what a graph holds, grows with the micro-batches: a few bytes of a
/// plan could ask for more than there is memory.
std::optional<std::string> check_issues(const plan::Plan& plan) {
  const std::int64_t micro_batches = plan.dims.micro_batches;
  std::int64_t repeated_segments = 0;
  for (const plan::Segment& segment : plan.segments) {
    std::int64_t repeated_ops = 0;
    for (plan::OpId op = segment.first_op; op < segment.end_op; ++op)
      repeated_ops += plan.ops[op].stage == plan::Stage::micro_batch;
    if (!segment.whole_iteration) {
      repeated_segments += repeated_ops != 0;
    } else if (repeated_ops > plan::kMostLaunchesOfAGraph / micro_batches) {
      return fmt::format(
          "segment {} of the plan unrolls {} ops for each of {} micro-batches, more than one graph can hold "
          "({} in "
          "all)",
          segment.id, repeated_ops, micro_batches, plan::kMostLaunchesOfAGraph);
    }
  }
  if (repeated_segments <= plan::kMostIssuesOfAStep / micro_batches) return std::nullopt;
  return fmt::format(
      "the plan issues {} segments for each of {} micro-batches, more than a step can issue ({} in all)",
      repeated_segments, micro_batches, plan::kMostIssuesOfAStep);
}

}  // namespace

std::optional<std::string> check_order(const plan::Plan& plan) {
  if (auto wrong = check_named_buffers(plan)) return wrong;

  plan::OpId next = 0;
  for (const plan::Segment& segment : plan.segments) {
    if (segment.first_op != next || segment.end_op <= segment.first_op || segment.end_op > plan.ops.size()) {
      return fmt::format("segment {} of the plan holds ops {} to {}, must begin at {} and end within {}",
                         segment.id, segment.first_op, segment.end_op, next, plan.ops.size());
    }
    next = segment.end_op;
    if (segment.whole_iteration) continue;
    for (plan::OpId op = segment.first_op; op < segment.end_op; ++op) {
      if (plan.ops[op].stage != plan.ops[segment.first_op].stage) {
        return fmt::format("segment {} of the plan spans two stages without `whole_iteration`", segment.id);
      }
    }
  }
  if (next != plan.ops.size()) {
    return fmt::format("the segments of the plan end at op {}, but there are {}", next, plan.ops.size());
  }
  for (std::size_t i = 1; i < plan.ops.size(); ++i) {
    if (plan.ops[i].stage < plan.ops[i - 1].stage) {
      return fmt::format("op {} of the plan has stage `{}` after an op of stage `{}`", i,
                         plan::stage_name(plan.ops[i].stage), plan::stage_name(plan.ops[i - 1].stage));
    }
  }
  if (auto wrong = check_issues(plan)) return wrong;
  // A whole-iteration segment unrolls the micro-batches; a second group of micro-batch ops outside would run
  // on its own.
  std::size_t groups_of_micro_batches = 0;
  bool in_plain_group = false;
  for (const plan::Segment& segment : plan.segments) {
    bool holds_micro_batch = false;
    for (plan::OpId op = segment.first_op; op < segment.end_op; ++op) {
      holds_micro_batch = holds_micro_batch || plan.ops[op].stage == plan::Stage::micro_batch;
    }
    if (!holds_micro_batch) continue;
    if (segment.whole_iteration || !in_plain_group) ++groups_of_micro_batches;
    in_plain_group = !segment.whole_iteration;
  }
  if (groups_of_micro_batches > 1)
    return "a `whole_iteration` segment of the plan does not hold all ops of stage `micro_batch`";

  for (const plan::Check& check : plan.checks) {
    if (check.flag >= plan.buffers.size() || plan.buffers[check.flag].name != plan::names::kNonfinite) {
      return fmt::format("the check `{}` of the plan does not read the buffer `{}`", check.kind,
                         plan::names::kNonfinite);
    }
  }
  for (std::size_t i = 0; i < plan.teardown.size(); ++i) {
    for (std::size_t j = i + 1; j < plan.teardown.size(); ++j) {
      if (plan.teardown[i] == plan.teardown[j])
        return fmt::format("the plan tears down `{}` twice", plan.teardown[i]);
    }
  }
  return std::nullopt;
}

}  // namespace capstan::runtime
