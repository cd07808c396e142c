// Batch scripts of Slurm: `#SBATCH` options before the first command, and exported variables with literal
// values. Facts about the job that a login node cannot see otherwise. Nothing is run; values that are not
// literal are left out and listed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/environment/env_file.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

struct SbatchOption {
  std::string name;  ///< long form without dashes: "nodes", "ntasks-per-node", "gpus-per-node", "gres", ...
  Span name_span;
  std::string value;  ///< empty for options without value
  Span value_span;
};

struct CountWithPlace {
  std::int64_t count = 0;
  Span key, value;
  bool or_more = false;  ///< of a range `2-4`: Slurm decides; `count` is the least
};

struct SbatchScript {
  std::vector<SbatchOption> options;    ///< in order, later ones win
  std::optional<CountWithPlace> nodes;  ///< `--nodes 4`, `-N 4`; of a range `2-4` the least
  std::optional<CountWithPlace> tasks_per_node;
  std::optional<CountWithPlace>
      gpus_per_node;  ///< `--gpus-per-node h100:8`, `--gres=gpu:8`, `gpus-per-task` x tasks
  std::string gpu;    ///< type named in gres or gpus ("h100"); may be empty
  std::vector<EnvironmentVariable> variables;  ///< unconditional exports with literal values
};

/// True if the text has an `#SBATCH` line.
bool is_sbatch(std::string_view text);
SbatchScript parse_sbatch(SourceId source, const SourceMap& sources, std::vector<SyntaxProblem>& problems);

}  // namespace capstan
