#include "runtime/execute/issue_order.h"

namespace capstan::runtime {

using plan::OpId;
using plan::Segment;
using plan::Stage;

std::vector<SegmentIssue> step_order(const plan::Plan& plan) {
  std::vector<SegmentIssue> order;
  const auto repeated = [&](const Segment& segment) {
    return !segment.whole_iteration && plan.ops[segment.first_op].stage == Stage::micro_batch;
  };
  for (std::size_t i = 0; i < plan.segments.size();) {
    if (!repeated(plan.segments[i])) {
      order.push_back({plan.segments[i].id, -1});
      ++i;
      continue;
    }
    std::size_t end = i;
    while (end < plan.segments.size() && repeated(plan.segments[end])) ++end;
    for (std::int64_t micro_batch = 0; micro_batch < plan.dims.micro_batches; ++micro_batch) {
      for (std::size_t j = i; j < end; ++j) order.push_back({plan.segments[j].id, micro_batch});
    }
    i = end;
  }
  return order;
}

std::vector<OpIssue> segment_order(const plan::Plan& plan, const Segment& segment) {
  std::vector<OpIssue> order;
  if (!segment.whole_iteration) {
    for (OpId op = segment.first_op; op < segment.end_op; ++op) order.push_back({op, -1});
    return order;
  }
  OpId op = segment.first_op;
  for (; op < segment.end_op && plan.ops[op].stage == Stage::step_begin; ++op) order.push_back({op, -1});
  OpId end = op;
  while (end < segment.end_op && plan.ops[end].stage == Stage::micro_batch) ++end;
  for (std::int64_t micro_batch = 0; micro_batch < plan.dims.micro_batches && end > op; ++micro_batch) {
    for (OpId each = op; each < end; ++each) order.push_back({each, micro_batch});
  }
  for (op = end; op < segment.end_op; ++op) order.push_back({op, -1});
  return order;
}

}  // namespace capstan::runtime
