// `capstan rules conformance`: agreement with tables of verdicts.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "compiler/driver/command_rules_parts.h"
#include "compiler/driver/conformance.h"
#include "compiler/driver/usage_error.h"

namespace capstan {
namespace {

struct ConformanceOptions {
  std::vector<std::string> cases, verdicts, rule_folders;
  std::string stack;
  double at_least = 0;
  bool markdown = false;
};

Stack stack_for(const ConformanceOptions& options, const std::string& table) {
  const Schema& schema = builtin_schema();
  if (!options.stack.empty()) {
    const Stack* stack = schema.find_stack(options.stack);
    if (stack == nullptr) throw UsageError(fmt::format("there is no stack `{}`", options.stack));
    return *stack;
  }
  const std::optional<Stack> stack = stack_of_table(table, schema);
  if (!stack) {
    throw UsageError(
        fmt::format("`{}` names no stack (verdicts-<frontend>-<version>.jsonl); give --stack", table));
  }
  return *stack;
}

int run_conformance(const ConformanceOptions& options) {
  const LoadedRules loaded(options.rule_folders);
  ConformanceCases cases;
  for (const std::string& path : options.cases) read_cases(path, cases);
  std::vector<Conformance> tables;
  bool enough = true;
  for (const std::string& path : options.verdicts) {
    const Stack stack = stack_for(options, path);
    tables.push_back(judge_table(loaded.rules, builtin_schema(), stack, cases, read_verdicts(path)));
    enough = enough && tables.back().cases > 0 && tables.back().agreement() >= options.at_least;
    if (options.markdown) continue;
    if (options.verdicts.size() > 1) fmt::print("{}", fmt::format("{} ({})\n", path, stack.name));
    fmt::print("{}", describe_disagreements(tables.back()) + summary_line(tables.back()) + "\n");
  }
  if (options.markdown) fmt::print("{}", conformance_page(tables));
  return enough ? kExitClean : kExitFindings;
}

}  // namespace

void add_conformance_command(CLI::App& rules, int& exit_code) {
  auto options = std::make_shared<ConformanceOptions>();
  CLI::App* command =
      rules.add_subcommand("conformance", "compare the rules with verdicts of the real framework");
  command->add_option("--cases", options->cases, "cases, JSON lines; repeatable")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--verdicts", options->verdicts, "verdicts of one release, JSON lines; repeatable")
      ->required()
      ->type_name("FILE")
      ->allow_extra_args(false);
  command->add_option("--stack", options->stack, "the stack of the verdicts; default: from the file's name")
      ->type_name("STACK");
  command->add_option("--at-least", options->at_least, "percent of agreement below which the exit code is 1")
      ->check(CLI::Range(0.0, 100.0))
      ->check([](const std::string& text) {  // NaN lies in every range
        return text.find_first_of("nN") == std::string::npos ? std::string() : "`" + text + "` is no number";
      })
      ->type_name("PERCENT");
  command->add_flag("--markdown", options->markdown, "print a table of all releases instead");
  command->add_option("--rules", options->rule_folders, "a folder of own rules; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->callback([options, &exit_code] { exit_code = run_conformance(*options); });
}

}  // namespace capstan
