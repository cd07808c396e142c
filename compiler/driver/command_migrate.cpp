#include "compiler/driver/command_migrate.h"

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/migrate.h"
#include "compiler/solve/check.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct MigrateOptions {
  std::string file;
  std::string to;
  bool write = false;
};

/// Texts that were edited, and the disk for all others.
struct EditedReader : FileReader {
  std::map<std::string, std::string> texts;
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    const auto found = texts.find(path);
    return found == texts.end() ? disk_reader().read(path, failure) : std::optional(found->second);
  }
};

std::vector<Diagnostic> findings_of(Workspace& workspace, const PreparedConfig& prepared, Sink& sink) {
  check({prepared.config, *prepared.schema, *prepared.rules, prepared.stack, workspace.sources()}, {}, sink);
  std::vector<Diagnostic> findings = sink.take();
  sort_for_output(findings);
  return findings;
}

std::size_t errors_in(const std::vector<Diagnostic>& findings) {
  std::size_t errors = 0;
  for (const Diagnostic& finding : findings) errors += finding.severity == Severity::error;
  return errors;
}

std::string verdict(const std::string& stack, const std::vector<Diagnostic>& findings) {
  const std::size_t errors = errors_in(findings);
  return fmt::format("{}: {} error{}, {} other finding{}\n", stack, errors, errors == 1 ? "" : "s",
                     findings.size() - errors, findings.size() - errors == 1 ? "" : "s");
}

int print_findings(const std::vector<Diagnostic>& findings, const Workspace& workspace, int code) {
  std::fputs(render_concise(findings, workspace.sources(), {}, {}).c_str(), stdout);
  return code;
}

int migrate(const MigrateOptions& options) {
  Sink sink;
  ConfigOptions config_options;
  Workspace workspace(config_options, sink);
  const Stack* to = workspace.schema().find_stack(options.to);
  if (to == nullptr) {
    std::vector<std::string> names;
    for (const Stack& stack : workspace.schema().stacks()) names.push_back(stack.name);
    const std::string near = nearest(options.to, names);
    throw UsageError(fmt::format("no stack is named `{}`{}", options.to,
                                 near.empty() ? "" : "; did you mean `" + near + "`?"));
  }
  const auto file = workspace.read_source(options.file, options.file, sink);
  const auto before = file ? workspace.prepare(*file, sink) : std::nullopt;
  if (!before) return print_findings(sink.diagnostics(), workspace, kExitFindings);
  const std::string from_name = before->stack.stack.name;
  const std::vector<Diagnostic> found_before = findings_of(workspace, *before, sink);

  const Migration migration = plan_migration(before->config, *before->schema, workspace.view_of(*to));
  std::vector<KeyChange> changes;
  for (const Migration::Step& step : migration.steps) {
    fmt::print("- {}\n", step.reason);
    changes.insert(changes.end(), step.changes.begin(), step.changes.end());
  }
  changes.insert(changes.end(), migration.drops.begin(), migration.drops.end());
  const EditPlan plan = plan_edits(changes, before->config, workspace.sources());
  for (const std::string& clause : plan.by_hand) fmt::print("- by hand: {}\n", clause);
  for (const std::string& clause : migration.lost) fmt::print("- cannot be carried over: {}\n", clause);

  std::map<SourceId, std::vector<Edit>> by_source;
  for (const Edit& edit : plan.edits) by_source[edit.span.source].push_back(edit);
  EditedReader reader;
  std::string main_text(workspace.sources()[*file].bytes());
  for (auto& [source, edits] : by_source) {
    const SourceFile& old = workspace.sources()[source];
    std::optional<std::string> text = apply_edits(old.bytes(), std::move(edits));
    if (!text) throw UsageError(fmt::format("the edits of `{}` overlap", old.name()));
    fmt::print("{}", unified_diff(old.name(), old.bytes(), *text));
    if (source == *file) main_text = *text;
    reader.texts[old.name()] = std::move(*text);
  }

  const SourceId edited = workspace.sources().add(options.file, main_text, SourceKind::file);
  const auto after = workspace.prepare(edited, reader, sink);
  if (!after) return print_findings(sink.diagnostics(), workspace, kExitFindings);
  const std::vector<Diagnostic> found_after = findings_of(workspace, *after, sink);
  fmt::print("{}{}", verdict(from_name, found_before), verdict(to->name, found_after));
  std::fputs(render_concise(found_after, workspace.sources(), {}, {}).c_str(), stdout);

  if (options.write) {
    for (const auto& [path, text] : reader.texts) {
      if (const auto failure = replace_file(path, text)) {
        throw UsageError(fmt::format("cannot write `{}`: {}", path, *failure));
      }
    }
  }
  const bool clean = plan.complete() && migration.lost.empty() && errors_in(found_after) == 0;
  return clean ? kExitClean : kExitFindings;
}

}  // namespace

void add_migrate_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<MigrateOptions>();
  CLI::App* command = program.add_subcommand("migrate", "rewrite a config for another release");
  command->add_option("file", options->file, "config file")->required()->type_name("FILE");
  command->add_option("--to", options->to, "stack to migrate to, such as bridge-0.6")
      ->required()
      ->type_name("STACK");
  command->add_flag("--write", options->write, "rewrite the files instead of only showing the changes");
  command->callback([options, &exit_code] { exit_code = migrate(*options); });
}

}  // namespace capstan
