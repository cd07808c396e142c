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

/// A directory that this process alone writes to. Its lock, DIR/run.lock, goes with the object (and with the
/// process, however that ends).
class RunDirectory {
 public:
  RunDirectory() = default;
  RunDirectory(RunDirectory&& other) noexcept;
  RunDirectory& operator=(RunDirectory&& other) noexcept;
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;
  ~RunDirectory();

  const std::string& path() const { return path_; }

  /// Removes what an earlier run left: metrics.jsonl, report.json, plan.json, graphs, its checkpoints. RN050.
  Status clear() const;
  /// Takes the directory away again when nothing was written to it.
  void drop_if_empty();

 private:
  friend Outcome<RunDirectory> make_run_directory(const RunDirectoryWish& wish);
  std::string path_;
  int lock_ = -1;
};

/// Makes the directory and its `checkpoints` and locks it. RN050 when it holds a run, when another process
/// writes to it, or when it cannot be made.
Outcome<RunDirectory> make_run_directory(const RunDirectoryWish& wish);

/// Whether a path of --resume stands in this run directory: its earlier part is then kept.
bool resumes_from(const std::string& directory, const std::string& resume);

}  // namespace capstan::runtime
