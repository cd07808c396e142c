#include "compiler/driver/command_run.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "compiler/driver/compile_config.h"
#include "compiler/driver/usage_error.h"
#include "compiler/plan/json.h"

namespace capstan {
namespace {

struct RunCommandOptions {
  std::string file;
  ConfigOptions config;
  std::vector<std::string> runtime_arguments;
};

/// capstan-run stands beside this program, whatever PATH says.
std::string runtime_program() {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) throw UsageError(fmt::format("cannot find this program's folder: {}", error.message()));
  return (self.parent_path() / "capstan-run").string();
}

/// Puts the text where standard input reads it; no file is left behind, whatever happens to the run.
void offer_as_standard_input(const std::string& text) {
  const int plan = memfd_create("plan.json", 0);
  if (plan < 0) throw UsageError(fmt::format("cannot hold the plan in memory: {}", std::strerror(errno)));
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(plan, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) throw UsageError(fmt::format("cannot hold the plan in memory: {}", std::strerror(errno)));
    written += static_cast<std::size_t>(count);
  }
  if (lseek(plan, 0, SEEK_SET) != 0 || dup2(plan, STDIN_FILENO) < 0) {
    throw UsageError(fmt::format("cannot pass the plan on: {}", std::strerror(errno)));
  }
  if (plan != STDIN_FILENO) close(plan);
}

int run(const RunCommandOptions& options) {
  const std::string program = runtime_program();
  const CompiledConfig compiled = compile_config(options.file, options.config);
  const int exit_code = report_compilation(compiled);
  if (!compiled.plan) return exit_code;
  if (compiled.plan->data.kind == "none") {
    throw UsageError(
        fmt::format("`{}` names no data: set `dataset.path`, or `execute.data = \"random\"`", options.file));
  }
  std::fputs(summarize_plan(*compiled.plan, options.file, compiled.stack).c_str(), stdout);
  std::fflush(stdout);
  offer_as_standard_input(plan::write_json(*compiled.plan));

  std::vector<std::string> arguments = {program, "-"};
  arguments.insert(arguments.end(), options.runtime_arguments.begin(), options.runtime_arguments.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  throw UsageError(fmt::format("cannot execute `{}`: {}", program, std::strerror(errno)));
}

}  // namespace

void add_run_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<RunCommandOptions>();
  CLI::App* command = program.add_subcommand(
      "run", "compile a training config and train; arguments behind -- go to capstan-run");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command
      ->add_option("runtime", options->runtime_arguments,
                   "options of capstan-run (see `capstan-run --help`), behind --")
      ->type_name("-- OPTION...");
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace capstan
