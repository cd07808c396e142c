#include "runtime/execute/executor.h"

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

namespace capstan::runtime {

using plan::Segment;
using plan::SegmentMode;

std::string describe_op(const plan::Plan& plan, plan::OpId id) {
  const plan::Op& op = plan.ops[id];
  std::string where = op.module;
  if (op.layer >= 0) where += fmt::format(", layer {}", op.layer);
  return fmt::format("op {} `{}` ({}, {})", id, plan::op_kind_name(op.kind), where,
                     plan::phase_name(op.phase));
}

Executor::Executor(const plan::Plan& plan, Backend& backend)
    : plan_(plan),
      backend_(backend),
      step_order_(step_order(plan)),
      recorded_(plan.segments.size()),
      recorded_with_digests_(plan.segments.size()) {
  for (const Segment& segment : plan.segments) {
    segment_orders_.push_back(segment_order(plan, segment));
    has_graphs_ = has_graphs_ || segment.mode == SegmentMode::graph;
  }
}

std::size_t Executor::launches(bool captured) const {
  std::size_t count = 0;
  for (const SegmentIssue& each : step_order_) {
    const bool replayed = captured && plan_.segments[each.segment].mode == SegmentMode::graph;
    count += replayed ? 1 : segment_orders_[each.segment].size();
  }
  return count;
}

Status Executor::issue(const std::vector<OpIssue>& ops) {
  for (const OpIssue& each : ops) {
    if (Status issued = backend_.run(each.op); !issued.ok()) return issued;
  }
  return {};
}

Status Executor::run_eager() {
  for (const SegmentIssue& each : step_order_) {
    if (Status issued = issue(segment_orders_[each.segment]); !issued.ok()) return issued;
  }
  return {};
}

Status Executor::capture(const Segment& segment) {
  const auto began = std::chrono::steady_clock::now();
  if (Status started = backend_.begin_record(segment.id); !started.ok()) return started;
  for (const OpIssue& each : segment_orders_[segment.id]) {
    if (failing_op_ == each.op) backend_.fail_next_op();
    if (Status issued = backend_.run(each.op); !issued.ok()) return issued;
  }
  const Outcome<RecordingInfo> info = backend_.end_record();
  if (!info.ok()) return info.error();
  captured_.push_back({segment.id, info.value()});
  recorded_[segment.id] = true;
  capture_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  return {};
}

Status Executor::run_captured() {
  for (const SegmentIssue& each : step_order_) {
    const Segment& segment = plan_.segments[each.segment];
    if (segment.mode == SegmentMode::eager) {
      if (Status issued = issue(segment_orders_[each.segment]); !issued.ok()) return issued;
      continue;
    }
    if (!recorded_[segment.id]) {
      if (Status made = capture(segment); !made.ok()) return made;
    }
    if (Status replayed = backend_.replay(segment.id); !replayed.ok()) return replayed;
  }
  return {};
}

Status Executor::issue_with_digests(const std::vector<OpIssue>& ops) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (Status issued = backend_.run(ops[i].op); !issued.ok()) return issued;
    if (Status issued = backend_.run_digest(ops[i].op, i); !issued.ok()) return issued;
  }
  return {};
}

Outcome<std::vector<Executor::Digest>> Executor::run_with_digests(bool replayed) {
  std::size_t most = 0;
  for (const auto& ops : segment_orders_) most = std::max(most, ops.size());
  // Recordings hold the slots' addresses: reserved once, before the first of them.
  if (std::find(recorded_with_digests_.begin(), recorded_with_digests_.end(), true) ==
      recorded_with_digests_.end()) {
    if (Status reserved = backend_.reserve_digests(most); !reserved.ok()) return reserved.error();
  }
  std::vector<Digest> digests;
  std::vector<std::uint64_t> slots;
  for (const SegmentIssue& each : step_order_) {
    const Segment& segment = plan_.segments[each.segment];
    const std::vector<OpIssue>& ops = segment_orders_[each.segment];
    if (segment.mode == SegmentMode::eager || !replayed) {
      if (Status issued = issue_with_digests(ops); !issued.ok()) return issued.error();
    } else {
      if (!recorded_with_digests_[segment.id]) {
        if (Status started = backend_.begin_record(digest_key(segment.id)); !started.ok())
          return started.error();
        if (Status issued = issue_with_digests(ops); !issued.ok()) return issued.error();
        if (const Outcome<RecordingInfo> info = backend_.end_record(); !info.ok()) return info.error();
        recorded_with_digests_[segment.id] = true;
      }
      if (Status issued = backend_.replay(digest_key(segment.id)); !issued.ok()) return issued.error();
    }
    slots.resize(ops.size());
    if (Status read = backend_.read_digests(slots); !read.ok()) return read.error();
    for (std::size_t i = 0; i < ops.size(); ++i) {
      digests.push_back(
          {segment.id, ops[i], each.micro_batch >= 0 ? each.micro_batch : ops[i].micro_batch, slots[i]});
    }
  }
  return digests;
}

}  // namespace capstan::runtime
