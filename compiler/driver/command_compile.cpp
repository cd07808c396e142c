#include "compiler/driver/command_compile.h"

#include <fmt/format.h>
#include <stdio_ext.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "compiler/driver/compile_config.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/write_output.h"
#include "compiler/plan/dot.h"
#include "compiler/plan/json.h"
#include "compiler/plan/passes.h"
#include "compiler/plan/print.h"

namespace capstan {
namespace {

struct CompileOptions {
  std::string file;
  std::string output;  ///< empty or "-": standard output
  std::string format = "json";
  std::string after;  ///< pass to stop after; empty: all
  ConfigOptions config;
};

std::string render(const plan::Plan& plan, const std::string& format) {
  if (format == "text") return plan::print_text(plan, {.buffers = true, .offsets = plan.memory.arena > 0});
  if (format == "dot") return plan::print_dot(plan);
  return plan::write_json(plan);
}

int compile(const CompileOptions& options) {
  if (!options.after.empty() && options.format == "json") {
    throw UsageError(
        "`--after` shows an unfinished plan, which nobody can run: it goes with the formats text and dot");
  }
  const CompiledConfig compiled = compile_config(options.file, options.config, options.after);
  const int exit_code = report_compilation(compiled);
  if (!compiled.plan) return exit_code;
  const std::string text = render(*compiled.plan, options.format);
  const bool to_standard_output = options.output.empty() || options.output == "-";
  write_output(options.output, text, compiled.workspace->sources(), compiled.further_inputs);
  if (!options.after.empty()) return exit_code;
  // Whoever reads the plan from standard output reads nothing else there.
  std::fputs(summarize_plan(*compiled.plan, options.file, compiled.stack).c_str(),
             to_standard_output ? stderr : stdout);
  // The plan lies on disk, whoever reads the summary.
  if (!to_standard_output && std::fflush(stdout) != 0) {
    std::fputs("capstan: the summary could not be written\n", stderr);
    __fpurge(stdout);
    std::clearerr(stdout);
  }
  return exit_code;
}

}  // namespace

void add_compile_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<CompileOptions>();
  CLI::App* command =
      program.add_subcommand("compile", "lower a training config to a plan that capstan-run executes");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--output,-o", options->output, "file for the plan instead of standard output")
      ->type_name("FILE");
  command->add_option("--format", options->format, "json (what capstan-run reads), text, or dot")
      ->check(CLI::IsMember({"json", "text", "dot"}));
  std::vector<std::string> steps = {"lowering"};
  for (const plan::Pass& pass : plan::passes()) steps.push_back(pass.name);
  command
      ->add_option("--after", options->after, "stop after a pass and print the unfinished plan (text, dot)")
      ->check(CLI::IsMember(steps));
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = compile(*options); });
}

}  // namespace capstan
