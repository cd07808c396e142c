// What a subcommand is to the program. One file per command: command_X.h declares `void
// add_X_command(CLI::App&, int&)`, which adds the subcommand with its options; its callback does the work and
// stores the exit code. main.cpp lists them.
#pragma once

namespace CLI {
class App;
}

namespace capstan {

enum ExitCode : int {
  kExitClean = 0,  ///< nothing at or above the fail level
  kExitFindings = 1,
  kExitUsage = 2,      ///< bad usage, or an internal error
  kExitUndecided = 3,  ///< a question could not be decided within its limits
  kExitRunFailed = 4,
  kExitReplayDiffers = 5
};

using AddCommand = void (*)(CLI::App& program, int& exit_code);

}  // namespace capstan
