// What a run did, as data and as one JSON text (docs/run-report.md, docs/run-report.schema.json). Plain
// values; the session fills them. Times are milliseconds where the name ends in _ms, otherwise seconds;
// memory is bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/backend.h"
#include "runtime/execute/executor.h"

namespace capstan::runtime {

inline constexpr int kReportVersion = 1;

/// Of repeated measurements: mean, median and spread.
struct Spread {
  std::int64_t count = 0;
  double mean = 0, median = 0, minimum = 0, maximum = 0, quartile1 = 0, quartile3 = 0;
};
/// Quartiles by linear interpolation between the sorted values.
Spread spread_of(std::vector<double> values);

struct LossSummary {
  std::int64_t count = 0;  ///< steps whose loss was read
  double first = 0, last = 0, minimum = 0;
  std::uint64_t digest = 0;  ///< of the bits of all of them, in order
};

struct Comparison {
  Spread eager_ms, captured_ms;            ///< device time of a step
  Spread eager_host_ms, captured_host_ms;  ///< host time to issue it
  bool loss_match = false;                 ///< bit for bit, every pair
  double loss_max_delta = 0;
  double speedup_percent = 0;     ///< step time saved, of the eager median
  std::int64_t memory_delta = 0;  ///< measured, captured less eager
  std::string verdict;            ///< in words
};

struct Verification {
  std::int64_t every = 0, checked = 0;
  std::string first_difference;  ///< empty: none
};

struct RunReport {
  std::string program;
  std::string status;  ///< finished, interrupted, failed, replay_differs
  std::string mode;    ///< as_planned, eager, compare_eager
  std::string plan_path, plan_digest;
  const plan::Plan* plan = nullptr;
  DeviceInfo device;
  std::int64_t first_step = 0, steps_done = 0, target_steps = 0;
  std::string resumed_from;
  LossSummary loss;
  std::int64_t nonfinite_steps = 0;
  Spread eager_step_ms, captured_step_ms;    ///< wall time of training steps, capture step left out
  Spread eager_issue_us, captured_issue_us;  ///< host time of issuing them; empty where issuing runs them
  double capture_step_ms = 0;
  std::vector<CapturedSegment> captures;
  double capture_seconds = 0;
  MemoryUse memory, memory_before_capture;
  std::vector<std::string> checkpoints;
  std::optional<Comparison> comparison;
  std::optional<Verification> verification;
  std::vector<Diagnostic> diagnostics;
  double seconds = 0;
};

std::string to_json(const RunReport& report);

}  // namespace capstan::runtime
