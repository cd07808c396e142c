// In which order a training step issues its ops (docs/plan-format.md, "Execution of one step").
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/plan/plan.h"

namespace capstan::runtime {

/// One issue of a segment within a step.
struct SegmentIssue {
  std::uint32_t segment = 0;
  std::int64_t micro_batch = -1;  ///< -1: not per micro-batch (step_begin, step_end, whole iterations)
};

/// Every segment issue of a step, in order.
std::vector<SegmentIssue> step_order(const plan::Plan& plan);

/// One op of a segment issue.
struct OpIssue {
  plan::OpId op = 0;
  std::int64_t micro_batch = -1;  ///< within a whole iteration: which one; otherwise -1
};

/// The ops of one issue of a segment: as listed, or, for a whole iteration, with its micro-batch ops
/// repeated.
std::vector<OpIssue> segment_order(const plan::Plan& plan, const plan::Segment& segment);

}  // namespace capstan::runtime
