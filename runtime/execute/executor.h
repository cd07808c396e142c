// Issues training steps of a plan on a backend, eagerly or with captured segments. Captures each segment of
// mode `graph` the first time that a step is asked to replay. Knows nothing of data, files or checks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/backend.h"
#include "runtime/execute/issue_order.h"

namespace capstan::runtime {

/// What capture made of one segment.
struct CapturedSegment {
  std::uint32_t segment = 0;
  RecordingInfo info;
};

/// Names the place of an op for messages: "op 12 `gemm` (mlp, layer 0, forward)".
std::string describe_op(const plan::Plan& plan, plan::OpId op);

class Executor {
 public:
  /// Both must outlive the executor; the backend is prepared for the plan.
  Executor(const plan::Plan& plan, Backend& backend);

  /// Whether the plan has a segment to capture.
  bool has_graphs() const { return has_graphs_; }
  bool captured() const { return !captured_.empty(); }
  const std::vector<CapturedSegment>& captures() const { return captured_; }
  /// Wall seconds that capturing took, so that the capture step is not timed as a step.
  double capture_seconds() const { return capture_seconds_; }

  /// Ops and recordings that a step issues one by one.
  std::size_t launches(bool captured) const;

  /// Drill: the device refuses this op while its segment is captured.
  void fail_at_capture(plan::OpId op) { failing_op_ = op; }

  /// Issues every op of one step, one by one.
  Status run_eager();
  /// Issues one step with its graph segments captured (now, where they are not yet) and replayed.
  Status run_captured();

  /// Where the outputs of a step first differed, and everything needed to say so.
  struct Digest {
    std::uint32_t segment = 0;
    OpIssue op;
    std::int64_t micro_batch = -1;
    std::uint64_t value = 0;
  };
  /// Issues one step with a digest after each op, eagerly or from recordings that hold the digests too.
  Outcome<std::vector<Digest>> run_with_digests(bool replayed);

 private:
  Status issue(const std::vector<OpIssue>& ops);
  Status issue_with_digests(const std::vector<OpIssue>& ops);
  Status capture(const plan::Segment& segment);
  /// Recordings with digests have keys after those of the segments.
  std::uint32_t digest_key(std::uint32_t segment) const {
    return static_cast<std::uint32_t>(plan_.segments.size()) + segment;
  }

  const plan::Plan& plan_;
  Backend& backend_;
  std::vector<SegmentIssue> step_order_;
  std::vector<std::vector<OpIssue>> segment_orders_;  ///< by segment
  std::vector<bool> recorded_, recorded_with_digests_;
  std::vector<CapturedSegment> captured_;
  bool has_graphs_ = false;
  double capture_seconds_ = 0;
  std::optional<plan::OpId> failing_op_;
};

}  // namespace capstan::runtime
