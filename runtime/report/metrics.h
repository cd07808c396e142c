// metrics.jsonl: one JSON object a line and step, appended as steps finish. Names are stable: step, loss, lr,
// grad_norm, tokens_per_s, step_ms, mode. Numbers read back to the same bits; a value that is not finite is
// null.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/device/outcome.h"

namespace capstan::runtime {

struct StepMetrics {
  std::int64_t step = 0;  ///< steps done, so the first is 1
  double loss = 0, learning_rate = 0, grad_norm = 0, tokens_per_s = 0, step_ms = 0;
  const char* mode = "eager";  ///< eager, capture, replay
};

class MetricsFile {
 public:
  ~MetricsFile();
  MetricsFile() = default;
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  /// Opens for appending; lines of steps after `keep_until` are dropped first, as those steps will be run
  /// again. RN050.
  Status open(const std::string& path, std::int64_t keep_until);
  /// One line, handed to the system before it returns. RN050 ("no space left on device").
  Status append(const StepMetrics& metrics);

 private:
  int file_ = -1;
  std::string path_;
};

}  // namespace capstan::runtime
