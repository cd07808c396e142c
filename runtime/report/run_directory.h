// Where a run writes: DIR/metrics.jsonl, DIR/report.json, DIR/checkpoints/. A directory that holds a run is
// used again only when the user says so or resumes from it.
#pragma once

#include <string>

#include "runtime/device/outcome.h"

namespace capstan::runtime {

struct RunDirectoryWish {
  std::string output;  ///< as given; empty: runs/<stem of config_name>, then -2, -3, ...
  std::string config_name;
  std::string resume;  ///< path given to --resume; may be empty
  bool overwrite = false;
};

/// Makes the directory and its `checkpoints`. RN050 when it holds a run or cannot be made.
Outcome<std::string> make_run_directory(const RunDirectoryWish& wish);

}  // namespace capstan::runtime
