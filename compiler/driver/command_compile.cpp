#include "compiler/driver/command_compile.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "compiler/driver/compile_config.h"
#include "compiler/driver/usage_error.h"
#include "compiler/plan/dot.h"
#include "compiler/plan/json.h"
#include "compiler/plan/print.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct CompileOptions {
  std::string file;
  std::string output;  ///< empty or "-": standard output
  std::string format = "json";
  ConfigOptions config;
};

std::string render(const plan::Plan& plan, const std::string& format) {
  if (format == "text") return plan::print_text(plan);
  if (format == "dot") return plan::print_dot(plan);
  return plan::write_json(plan);
}

int compile(const CompileOptions& options) {
  const CompiledConfig compiled = compile_config(options.file, options.config);
  const int exit_code = report_compilation(compiled);
  if (!compiled.plan) return exit_code;
  const std::string text = render(*compiled.plan, options.format);
  const bool to_standard_output = options.output.empty() || options.output == "-";
  if (to_standard_output) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (const auto failure = replace_file(options.output, text)) {
    throw UsageError(fmt::format("cannot write `{}`: {}", options.output, *failure));
  }
  // Whoever reads the plan from standard output reads nothing else there.
  std::fputs(summarize_plan(*compiled.plan, options.file, compiled.stack).c_str(),
             to_standard_output ? stderr : stdout);
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
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = compile(*options); });
}

}  // namespace capstan
