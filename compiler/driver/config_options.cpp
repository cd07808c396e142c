#include "compiler/driver/config_options.h"

#include <CLI/CLI.hpp>

namespace capstan {

void add_config_options(CLI::App& command, ConfigOptions& options) {
  command.add_option("--target", options.target, "stack that the config is meant for, such as bridge-0.4");
  command
      .add_option(
          "--input-format", options.input_format,
          "format of the config: toml, megatron-args, functional-test, bridge-yaml, python, hydra, hf-config "
          "(default: told by the content)")
      ->type_name("FORMAT");
  command
      .add_option("--run", options.run,
                  "which run of a functional test (MODEL_ARGS_2), or which function of a Python file")
      ->type_name("NAME");
  // No extra arguments: the words behind an option are files.
  command
      .add_option("--set", options.overrides,
                  "override: key=value, +key=value, ++key=value or ~key (repeatable)")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("OVERRIDE");
  command
      .add_option("--env-file", options.env_files,
                  "file of environment variables: NAME=value or export lines (repeatable)")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("FILE");
  command.add_flag("--env-from-process", options.env_from_process,
                   "take NCCL_*, NVTE_*, CUDA_*, PYTORCH_*, ... of this process");
  command.add_option("--rules", options.rule_folders, "folder of further rules (repeatable)")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("DIR");
}

}  // namespace capstan
