#include "compiler/driver/command_lint.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/driver/config_options.h"
#include "compiler/driver/report_options.h"
#include "compiler/driver/rule_selection.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/solve/check.h"

namespace capstan {
namespace {

struct LintOptions {
  std::vector<std::string> files;
  std::string stdin_filename = "<stdin>";
  ConfigOptions config;
  ReportOptions report;
  RuleSelection selection;
  bool no_explain = false;
  bool statistics = false;
};

/// A folder stands for the TOML files below it, project files left out.
std::vector<std::string> expand_folders(const std::vector<std::string>& arguments) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string& argument : arguments) {
    std::error_code error;
    if (argument == "-" || !fs::is_directory(argument, error)) {
      files.push_back(argument);
      continue;
    }
    std::vector<std::string> found;
    fs::recursive_directory_iterator at(argument, fs::directory_options::skip_permission_denied, error), end;
    for (; !error && at != end; at.increment(error)) {
      const fs::path& path = at->path();
      if (path.extension() == ".toml" && path.filename() != "capstan.toml" && at->is_regular_file(error)) {
        found.push_back(path.string());
      }
    }
    if (found.empty()) throw UsageError(fmt::format("folder `{}` holds no .toml file", argument));
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

std::string stack_words(const StackChoice& choice) {
  return choice.assumed ? fmt::format("{} (assumed: {})", choice.stack.name, choice.reason)
                        : choice.stack.name;
}

/// One file through all stages. Returns the words for the stack, empty when none was chosen.
std::string lint_file(const std::string& path, const LintOptions& options, Workspace& workspace, Sink& sink) {
  const std::optional<SourceId> file = workspace.read_source(path, options.stdin_filename, sink);
  if (!file) return {};
  const std::optional<PreparedConfig> prepared = workspace.prepare(*file, sink);
  if (!prepared) return {};
  CheckOptions check_options;
  check_options.explain = !options.no_explain;
  check({prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources()},
        check_options, sink);
  return stack_words(prepared->stack);
}

/// Findings by code, most frequent first.
std::string statistics_of(const std::vector<Diagnostic>& diagnostics) {
  std::vector<std::pair<std::string, std::size_t>> counts;
  for (const Diagnostic& diagnostic : diagnostics) {
    const std::string key = diagnostic.code + "  " + diagnostic.name;
    const auto found =
        std::find_if(counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == key; });
    if (found == counts.end())
      counts.emplace_back(key, 1);
    else
      ++found->second;
  }
  std::sort(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  std::string text;
  for (const auto& [key, count] : counts) text += fmt::format("{:6}  {}\n", count, key);
  return text;
}

int lint(const LintOptions& options) {
  if (options.statistics && options.report.format != "text" && options.report.format != "concise") {
    throw UsageError("`--statistics` goes with the formats text and concise");
  }
  const std::vector<std::string> files = expand_folders(options.files);
  if (std::count(files.begin(), files.end(), "-") > 1)
    throw UsageError("standard input (`-`) can be read only once");

  std::vector<Diagnostic> findings;
  RunSummary summary;
  Sink setup;
  Workspace workspace(options.config, setup);
  verify_selection(options.selection, workspace.rules());
  findings = setup.take();
  if (workspace.ok()) {
    std::string stack;
    bool same_stack = true;
    for (const std::string& path : files) {
      Sink sink;
      const std::string words = lint_file(path, options, workspace, sink);
      same_stack = same_stack && (summary.files == 0 || words == stack);
      stack = words;
      ++summary.files;
      std::vector<Diagnostic> found = sink.take();
      apply_selection(options.selection, found);
      findings.insert(findings.end(), std::make_move_iterator(found.begin()),
                      std::make_move_iterator(found.end()));
    }
    if (same_stack) summary.stack = stack;
  }
  sort_for_output(findings);
  summary.undecided = static_cast<std::size_t>(
      std::count_if(findings.begin(), findings.end(),
                    [](const Diagnostic& diagnostic) { return diagnostic.code == "SR001"; }));
  const int exit_code = report_findings(findings, workspace.sources(), summary, options.report);
  if (options.statistics) std::fputs(statistics_of(findings).c_str(), stdout);
  return exit_code;
}

}  // namespace

void add_lint_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<LintOptions>();
  CLI::App* command = program.add_subcommand("lint", "find what is wrong with training configs");
  command->add_option("files", options->files, "config files, folders of them, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--stdin-filename", options->stdin_filename, "name of standard input in findings")
      ->type_name("NAME");
  add_config_options(*command, options->config);
  add_report_options(*command, options->report);
  add_selection_options(*command, options->selection);
  command->add_flag("--no-explain", options->no_explain,
                    "do not search minimal conflicts; mark every value that a rule reads");
  command->add_flag("--statistics", options->statistics, "count findings by rule at the end");
  command->callback([options, &exit_code] { exit_code = lint(*options); });
}

}  // namespace capstan
