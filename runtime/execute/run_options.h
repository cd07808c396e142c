// The command line of capstan-run.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace capstan::runtime {

/// A fault that the run is asked to make, to show that it is noticed.
struct Drill {
  enum class Kind { none, nan, flip, fault } kind = Kind::none;
  std::uint64_t step = 0;  ///< nan: the step, counted from 1, before which a parameter becomes NaN
  std::uint64_t op = 0;    ///< fault: the op that the device refuses while its segment is captured
  std::string buffer;  ///< flip: the buffer in which the replayed side of a verification has one bit changed
};

struct RunOptions {
  std::string plan_path;
  std::string backend;  ///< "auto", "host", "cuda"; empty: as the plan says
  std::string output;   ///< empty: runs/<config name>, numbered when it exists
  std::string resume;   ///< file or directory; empty: from the start
  bool eager = false;
  bool compare_eager = false;
  std::int64_t rounds = 10;           ///< pairs of steps that --compare times
  std::int64_t verify_every = 0;      ///< steps; 0: never
  std::optional<std::int64_t> steps;  ///< instead of the plan's train_steps
  bool export_graphs = false;
  bool overwrite = false;
  bool quiet = false;
  std::int64_t threads = 0;  ///< host backend; 0: all
  std::int64_t steps_ahead =
      0;                    ///< steps in flight at most, where the device is asynchronous; 0: by their time
  std::int64_t device = 0;  ///< cuda device index
  std::int64_t teardown_seconds = 10;
  std::vector<std::string> for_cuda, for_host;  ///< options that were given and concern one backend only
  Drill drill;
};

/// What parsing gave: options, or a text to print (help, version) with exit code 0, or an error with exit
/// code 2.
struct ParsedArguments {
  RunOptions options;
  std::optional<int> exit_code;
  std::string text;
};

ParsedArguments parse_arguments(const std::vector<std::string>& arguments, std::string_view version);

}  // namespace capstan::runtime
