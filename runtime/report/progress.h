// The line that a person watches: step, loss, speed, time left. On a terminal it is rewritten in place, at
// most ten times a second; elsewhere a line now and then. Written to standard error; says nothing when quiet.
#pragma once

#include <chrono>
#include <cstdint>

#include "runtime/report/metrics.h"

namespace capstan::runtime {

class Progress {
 public:
  Progress(bool quiet, std::int64_t first_step, std::int64_t target_steps);
  ~Progress();

  void show(const StepMetrics& metrics);
  /// Ends a line that is being rewritten, so that other output starts on its own.
  void finish_line();

 private:
  using Clock = std::chrono::steady_clock;
  bool quiet_, terminal_, open_line_ = false;
  std::int64_t first_step_, target_steps_, shown_step_ = 0;
  Clock::time_point began_, shown_;
};

}  // namespace capstan::runtime
