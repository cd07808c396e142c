// What the words before a Python program say to it: `srun -N 2 --ntasks-per-node=8 torchrun --nnodes 2`, `env
// X=1 python`, `mpirun -x X=1`, `ray job submit --runtime-env-json='{...}' --`. Nothing is run.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grammar/arguments/argument_list.h"
#include "grammar/arguments/shell_expansion.h"

namespace capstan {

/// A variable that a launcher gives to the processes.
struct PassedVariable {
  EnvironmentVariable variable;
  bool known = false;  ///< false: only a shell can know the value
};

/// `NAME=value` words in front of the program (`env`, `mpirun -x`, `docker -e`, `apptainer --env`), those of
/// `srun --export=ALL,NAME=value`, and the names of capitals in a JSON text. The program ends at word
/// `behind`; 0: none.
std::vector<PassedVariable> variables_passed_by(const std::vector<ExpandedWord>& words, std::size_t behind);

struct LauncherCount {
  std::int64_t count = 0;
  Span key;             ///< the option
  ArgumentValue value;  ///< as written
};

/// The shape of the job, as far as the launcher says it.
struct LauncherShape {
  std::optional<LauncherCount> nodes, ranks_per_node, ranks;
  bool one_rank_per_task = false;  ///< srun starts the program itself: each task is a rank
};

/// torchrun's own counts win over those of srun or mpirun around it. torchrun that says its processes but no
/// nodes starts on one (torch/distributed/run.py, default of --nnodes).
LauncherShape launcher_shape(const std::vector<ArgumentValue>& words);

}  // namespace capstan
