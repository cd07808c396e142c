#include "compiler/driver/command_schema.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/driver/usage_error.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/schema/json_schema.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct SchemaOptions {
  std::string target;
  std::string output;
};

int print_schema(const SchemaOptions& options) {
  const Schema& schema = builtin_schema();
  Sink sink;
  const auto choice = choose_stack(Config{}, schema, options.target, sink);
  if (!choice) {
    const Diagnostic& problem = sink.diagnostics().front();
    throw UsageError(problem.message + (problem.notes.empty() ? "" : "; " + problem.notes.front().text));
  }
  const std::string text = print_json_schema(SchemaView(schema, choice->stack));
  if (options.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else if (const auto failure = replace_file(options.output, text)) {
    throw UsageError(fmt::format("cannot write `{}`: {}", options.output, *failure));
  }
  return kExitClean;
}

}  // namespace

void add_schema_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<SchemaOptions>();
  CLI::App* command =
      program.add_subcommand("schema", "print the keys of a stack as a JSON Schema for editors");
  command->add_option("--target", options->target,
                      "stack; the newest release of Megatron Bridge when absent");
  command->add_option("--output,-o", options->output, "file instead of standard output")->type_name("FILE");
  command->callback([options, &exit_code] { exit_code = print_schema(*options); });
}

}  // namespace capstan
