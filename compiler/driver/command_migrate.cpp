#include "compiler/driver/command_migrate.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/migrate_file.h"
#include "compiler/driver/migration_report.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_session.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/driver/write_output.h"
#include "compiler/fixes/apply.h"
#include "compiler/ruleset/message.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct MigrateOptions {
  std::vector<std::string> files;
  std::string to, output;
  std::string format = "text";
  bool write = false, diff = false;
  ConfigOptions config;
  SelectionOptions selection;
  MigrateFileOptions migrate;
};

/// What files become, over all that were given: path -> text before, text after.
using Texts = std::map<std::string, std::pair<std::string, std::string>>;

void check_usage(const MigrateOptions& options) {
  const bool standard_input =
      std::find(options.files.begin(), options.files.end(), "-") != options.files.end();
  if (standard_input && options.files.size() > 1) throw UsageError("standard input (`-`) goes alone");
  if (!options.output.empty() && options.files.size() > 1) throw UsageError("`--output` works on one file");
  if (options.write && !options.output.empty())
    throw UsageError("`--write` changes the files themselves, `--output` leaves them; give one of the two");
  if (options.diff && (options.write || !options.output.empty()))
    throw UsageError("`--diff` writes nothing; leave `--write` or `--output` out");
  if (options.format == "json" &&
      (options.output == "-" || (standard_input && options.output.empty() && !options.diff)))
    throw UsageError(
        "the migrated text goes to standard output; `--format json` needs `--diff` or `--output FILE` "
        "beside it");
  if (options.write && standard_input)
    throw UsageError("standard input cannot be rewritten; give `--output FILE`");
}

/// Whether the migrated text itself is what standard output gets.
bool prints_text(const MigrateOptions& options, const std::string& path) {
  return options.output == "-" || (path == "-" && options.output.empty() && !options.diff);
}

/// One text can be handed out alone only where no other file changes with it.
void check_alone(const MigrateOptions& options, const std::string& path, const SourceMap& sources,
                 const MigratedFile& result) {
  if (options.output.empty() && !prints_text(options, path)) return;
  const std::size_t own = result.texts.count(sources[result.source].name());
  if (result.texts.size() <= own) return;
  for (const auto& [name, texts] : result.texts) {
    if (name == sources[result.source].name()) continue;
    throw UsageError(fmt::format(
        "`{}` would have to change with `{}`: one output cannot hold both; `--write` rewrites them", name,
        path));
  }
}

/// A file that several of the given ones extend is written once.
void merge(const std::string& path, const MigratedFile& result, Texts& all,
           std::map<std::string, std::string>& by) {
  for (const auto& [name, texts] : result.texts) {
    const auto [known, is_new] = all.try_emplace(name, texts);
    if (is_new)
      by[name] = path;
    else if (known->second != texts)
      throw UsageError(
          fmt::format("`{}` would have to become one text for `{}` and another one for `{}`; "
                      "nothing was written",
                      name, by[name], path));
  }
}

/// True when every file became what it was to become.
bool write_files(const Texts& texts) {
  std::vector<std::string> written;
  for (const auto& [path, both] : texts) {
    if (path == "-") continue;
    if (const auto failure = replace_file(path, both.second)) {
      fmt::print(stderr, "capstan: cannot write `{}`: {}{}\n", path, *failure,
                 written.empty() ? "" : fmt::format("; {} was written before", joined(written, "and")));
      return false;
    }
    written.push_back("`" + path + "`");
  }
  return true;
}

std::optional<ProjectFile> project_of_all(const std::vector<std::string>& files) {
  std::optional<ProjectFile> project = project_for(files[0]);
  for (const std::string& path : files) {
    const std::optional<ProjectFile> other = project_for(path);
    if ((other ? other->path : "") != (project ? project->path : ""))
      throw UsageError("the files belong to different projects; migrate them one by one");
  }
  return project;
}

int migrate(MigrateOptions options) {
  check_usage(options);
  const std::optional<ProjectFile> project = project_of_all(options.files);
  if (project) add_project(*project, options.config, options.selection);
  Sink setup;
  Workspace before(options.config, setup);
  // The file as it will be states its release itself.
  std::optional<Workspace> untargeted;
  if (!options.config.target.empty() && setup.count(Severity::error) == 0) {
    ConfigOptions without = options.config;
    without.target.clear();
    untargeted.emplace(without, setup);
  }
  if (setup.count(Severity::error) > 0) {
    std::fputs(render_text(setup.diagnostics(), before.sources(), {}, {}).c_str(), stderr);
    return kExitUsage;
  }
  Workspace& after = untargeted ? *untargeted : before;
  const Stack& to = stack_named(before.schema(), options.to);
  options.migrate.known = known_codes(before.rules());
  options.migrate.selection = make_selection(options.selection, options.migrate.known);
  options.migrate.date = today();

  bool complete = true;
  Texts texts;
  std::map<std::string, std::string> changed_by;
  std::vector<std::string> documents, unreadable;
  std::string out, report;
  std::vector<std::pair<std::string, MigratedFile>> results;
  for (const std::string& path : options.files) {
    MigratedFile result = migrate_file(before, after, path, to, options.migrate);
    if (result.readable && project && !project->target.empty() && project->target != to.name)
      result.migration.notes.push_back(
          fmt::format("`{}` says `target = \"{}\"`, which holds against what the file says: change it, too",
                      project->path, project->target));
    complete = complete && is_complete(result);
    if (result.readable) check_alone(options, path, before.sources(), result);
    merge(path, result, texts, changed_by);
    results.emplace_back(path, std::move(result));
  }

  const bool written = options.write && !texts.empty();
  if (options.write && !write_files(texts)) return kExitUsage;
  for (const auto& [path, result] : results) {
    if (!result.readable) {
      report += render_concise(result.problems, before.sources(), {}, {});
    } else {
      if (options.files.size() > 1) report += path + ":\n";
      report += describe_changes(result, to);
      std::string diffs;
      for (const auto& [name, both] : result.texts) diffs += unified_diff(name, both.first, both.second);
      if (options.diff)
        out += diffs;
      else if (!prints_text(options, path))
        report += diffs;
      report += describe_verdicts(result, to, before.sources(), after.sources());
      if (prints_text(options, path)) out += result.text;
      if (!options.output.empty() && options.output != "-")
        write_output(options.output, result.text, before.sources(), options.config.project_inputs);
    }
    if (options.format != "json") continue;
    if (result.readable)
      documents.push_back(
          migration_json(path, result, before.sources(), after.sources(), written && !result.texts.empty()));
    else
      unreadable.push_back(unreadable_json(path, result, before.sources()));
  }
  if (options.format == "json") {
    out = json_document(fmt::format(R"({{"version":1,"to":{},"files":{},"unreadable":{}}})",
                                    json_of_text(to.name), json_list(documents), json_list(unreadable)));
  } else if (options.diff || prints_text(options, options.files[0])) {
    std::fputs(report.c_str(), stderr);  // standard output is a patch or the text, and nothing else
  } else {
    out += report;
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return complete && !(options.diff && !texts.empty()) ? kExitClean : kExitFindings;
}

}  // namespace

void add_migrate_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* command = program.add_subcommand("migrate", "rewrite configs for another release");
  command
      ->add_option("files", options->files,
                   "config files, or - for standard input (the result goes to standard output)")
      ->required()
      ->type_name("FILE");
  command->add_option("--to", options->to, "stack to migrate to, such as bridge-0.6")
      ->required()
      ->type_name("STACK");
  command->add_flag("--write", options->write, "rewrite the files instead of only showing the changes");
  command->add_option("--output", options->output, "write the migrated text there (- is standard output)")
      ->type_name("FILE");
  command->add_flag("--diff", options->diff,
                    "print a patch and nothing else; exit code 1 if anything would change");
  command->add_flag("--keep-defaults", options->migrate.keep_defaults,
                    "write down defaults that the new release changed");
  command->add_option("--format", options->format, "format of the answer")
      ->check(CLI::IsMember({"text", "json"}));
  add_config_options(*command, options->config);
  add_selection_options(*command, options->selection);
  command->callback([options, &exit_code] { exit_code = migrate(*options); });
}

}  // namespace capstan
