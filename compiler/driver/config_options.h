// What every command that reads a config takes from the command line besides the file: target, overrides,
// environment, rules.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/command.h"

namespace capstan {

struct ConfigOptions {
  std::string target;                  ///< `--target`; empty: stated by the config, or inferred
  std::string input_format;            ///< `--input-format`; empty: told by the content
  std::string run;                     ///< `--run`: which of several runs or recipes of the file
  std::vector<std::string> overrides;  ///< `--set`, in order
  std::vector<std::string> env_files;  ///< `--env-file`, in order
  bool env_from_process = false;
  std::vector<std::string> rule_folders;  ///< `--rules`
  /// Not options: the project file and what it names, which no output may replace.
  std::vector<std::string> project_inputs;
};

void add_config_options(CLI::App& command, ConfigOptions& options);

}  // namespace capstan
