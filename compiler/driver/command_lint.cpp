#include "compiler/driver/command_lint.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/baseline.h"
#include "compiler/diagnostics/finding_bound.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/driver/config_options.h"
#include "compiler/driver/distinct_paths.h"
#include "compiler/driver/fold_undecided.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/report_options.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/driver/write_output.h"
#include "compiler/fixes/suggest.h"

namespace capstan {
namespace {

/// Whether a report of the format says what would mend a finding: searching for that takes time.
bool shows_fixes(const std::string& format) {
  return format != "concise" && format != "gitlab" && format != "junit";
}

struct LintOptions {
  std::vector<std::string> files;
  std::optional<std::string> stdin_filename;
  ConfigOptions config;
  ReportOptions report;
  SelectionOptions selection;
  std::string baseline, write_baseline;
  std::string project;
  bool no_project = false;
  bool no_explain = false;
  bool statistics = false;
  bool show_undecided = false;
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
      std::error_code unknown;  // a link that leads nowhere is reported where it is read
      if (path.extension() == ".toml" && path.filename() != "capstan.toml" && !at->is_directory(unknown)) {
        found.push_back(path.string());
      }
    }
    if (found.empty()) throw UsageError(fmt::format("folder `{}` holds no .toml file", argument));
    std::sort(found.begin(), found.end());
    files.insert(files.end(), found.begin(), found.end());
  }
  return files;
}

/// The one project file that all checked files belong to; empty if none.
std::string project_of(const std::vector<std::string>& files, const LintOptions& options) {
  if (options.no_project) return {};
  if (!options.project.empty()) return options.project;
  std::string project;
  std::string last_folder = "?";
  bool first = true;
  for (const std::string& file : files) {
    const std::string folder =
        file == "-" ? std::string() : std::filesystem::path(file).parent_path().string();
    if (folder == last_folder) continue;
    last_folder = folder;
    const std::string found = project_of_file(file);
    if (!first && found != project) {
      throw UsageError(
          fmt::format("the files belong to different projects (`{}` and `{}`); check them one by one, or "
                      "give `--project`",
                      project.empty() ? "none" : project, found.empty() ? "none" : found));
    }
    project = found;
    first = false;
  }
  return project;
}

/// Lints file after file and keeps the counts.
class Linter {
 public:
  Linter(const LintOptions& options, Workspace& workspace)
      : options_(options),
        workspace_(workspace),
        known_(known_codes(workspace.rules())),
        selection_(make_selection(options.selection, known_)),
        today_(today()) {}

  void lint(const std::string& path) {
    Sink sink;
    const std::string stack = check_file(path, sink);
    same_stack_ = same_stack_ && (summary.files == 0 || stack == summary.stack);
    summary.stack = stack;
    ++summary.files;
    std::vector<Diagnostic> found = sink.take();
    apply_selection(found, selection_, known_);
    if (!options_.show_undecided) fold_undecided(found, summary);
    bound_findings(found);
    findings.insert(findings.end(), std::make_move_iterator(found.begin()),
                    std::make_move_iterator(found.end()));
  }

  void finish() {
    if (!same_stack_) summary.stack.clear();
    sort_for_output(findings);
  }

  std::vector<Diagnostic> findings;
  RunSummary summary;

 private:
  /// Gives the words for the stack, empty when none was chosen.
  std::string check_file(const std::string& path, Sink& sink) {
    const std::optional<SourceId> file =
        workspace_.read_source(path, options_.stdin_filename.value_or("<stdin>"), sink);
    if (!file) return {};
    const std::optional<PreparedConfig> prepared = workspace_.prepare(*file, sink);
    if (!prepared) return {};
    CheckOptions check_options;
    check_options.explain = !options_.no_explain;
    check_options.suggest_fixes = shows_fixes(options_.report.format);
    check_and_suggest({prepared->config, *prepared->schema, *prepared->rules, prepared->stack,
                       workspace_.sources(), prepared->shared},
                      check_options, sink);
    std::vector<Diagnostic> found = sink.take();
    summary.suppressed +=
        suppress_findings(found, *file, *prepared, workspace_.sources(), known_, today_, &sink);
    std::vector<Diagnostic> about_comments = sink.take();
    for (Diagnostic& diagnostic : found) sink.report(std::move(diagnostic));
    for (Diagnostic& diagnostic : about_comments) sink.report(std::move(diagnostic));
    return stack_words(prepared->stack);
  }

  const LintOptions& options_;
  Workspace& workspace_;
  std::vector<KnownCode> known_;
  Selection selection_;
  std::string today_;
  bool same_stack_ = true;
};

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

/// Problems of the tool's own inputs: reported like findings, but the exit code is that of bad usage.
int refuse(const std::vector<Diagnostic>& problems, const SourceMap& sources, const ReportOptions& options) {
  report_findings(problems, sources, {}, options);
  return kExitUsage;
}

int lint(LintOptions options) {
  if (options.statistics && options.report.format != "text" && options.report.format != "concise") {
    throw UsageError("`--statistics` goes with the formats text and concise");
  }
  const auto standard_inputs = std::count(options.files.begin(), options.files.end(), "-");
  if (options.stdin_filename && standard_inputs == 0)
    throw UsageError("`--stdin-filename` names standard input, and `-` is not among the files");
  if (standard_inputs > 1) throw UsageError("standard input (`-`) can be read only once");
  const std::vector<std::string> files = distinct_paths(expand_folders(options.files));

  Sink setup;
  if (const std::string path = project_of(files, options); !path.empty()) {
    SourceMap sources;
    const std::optional<ProjectFile> project = open_project(path, sources, setup);
    if (!project) return refuse(setup.diagnostics(), sources, options.report);
    add_project(*project, options.config, options.selection);
    options.report.further_inputs = options.config.project_inputs;
    if (options.baseline.empty()) options.baseline = project->baseline;
    if (options.report.fail_level.empty()) options.report.fail_level = project->fail_level;
  }
  if (options.report.fail_level.empty()) options.report.fail_level = "error";

  Workspace workspace(options.config, setup);
  if (!workspace.ok()) return refuse(setup.diagnostics(), workspace.sources(), options.report);
  std::optional<Baseline> baseline;
  if (!options.baseline.empty() && options.write_baseline.empty()) {
    if (const auto source = workspace.read_source(options.baseline, options.baseline, setup)) {
      baseline = read_baseline(*source, workspace.sources(), setup);
    }
    if (!baseline) return refuse(setup.diagnostics(), workspace.sources(), options.report);
  }

  Linter linter(options, workspace);
  for (Diagnostic& diagnostic : setup.take()) linter.findings.push_back(std::move(diagnostic));
  for (const std::string& path : files) linter.lint(path);
  linter.finish();
  if (!options.write_baseline.empty()) {
    const std::string text = print_baseline(make_baseline(linter.findings, workspace.sources()));
    write_output(options.write_baseline, text, workspace.sources(), options.report.further_inputs);
    const std::size_t count = linter.findings.size();
    if (options.write_baseline != "-")
      fmt::print("wrote {} finding{} to {}\n", count, count == 1 ? "" : "s",
                 safe_text(options.write_baseline));
    return kExitClean;
  }
  if (baseline) linter.summary.baselined = apply_baseline(linter.findings, *baseline, workspace.sources());
  for (const Diagnostic& diagnostic : linter.findings)
    linter.summary.undecided += undecided_rules(diagnostic);
  const int exit_code = report_findings(linter.findings, workspace.sources(), linter.summary, options.report);
  if (options.statistics) std::fputs(statistics_of(linter.findings).c_str(), stdout);
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
  CLI::Option* const known =
      command->add_option("--baseline", options->baseline, "file of known findings, which are not reported")
          ->type_name("FILE");
  command
      ->add_option("--write-baseline", options->write_baseline,
                   "write all findings to a baseline file, report none")
      ->type_name("FILE")
      ->excludes(known)
      ->excludes("--format")
      ->excludes("--output");
  CLI::Option* const project =
      command
          ->add_option("--project", options->project, "project file instead of the capstan.toml found upward")
          ->type_name("FILE");
  command->add_flag("--no-project", options->no_project, "read no project file")->excludes(project);
  command->add_flag("--no-explain", options->no_explain,
                    "do not search minimal conflicts; mark every value that a rule reads");
  command->add_flag("--show-undecided", options->show_undecided,
                    "show rules that a fact about the target would decide, not only their number");
  command->add_flag("--statistics", options->statistics, "count findings by rule at the end");
  command->callback([options, &exit_code] { exit_code = lint(*options); });
}

}  // namespace capstan
