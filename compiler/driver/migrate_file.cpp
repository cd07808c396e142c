#include "compiler/driver/migrate_file.h"

#include <algorithm>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "compiler/config/bind.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/migrate.h"
#include "compiler/fixes/pin_defaults.h"
#include "compiler/fixes/release_fixes.h"
#include "compiler/solve/check.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

/// Texts that were edited, and the disk for all others.
struct EditedReader : FileReader {
  std::map<std::string, std::string> texts;
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    const auto found = texts.find(path);
    return found == texts.end() ? disk_reader().read(path, failure) : std::optional(found->second);
  }
};

std::vector<Diagnostic> findings_of(const Config& config, const PreparedConfig& prepared, SourceId file,
                                    const Workspace& workspace, const MigrateFileOptions& options,
                                    Sink& sink) {
  CheckOptions check_options;
  check_options.suggest_fixes = false;
  check({config, *prepared.schema, *prepared.rules, prepared.stack, workspace.sources()}, check_options,
        sink);
  std::vector<Diagnostic> findings = sink.take();
  // What nobody stated about the target is undecided on both sides.
  std::erase_if(findings, [](const Diagnostic& finding) { return finding.code == "TG002"; });
  suppress_findings(findings, file, prepared, workspace.sources(), options.known, options.date);
  apply_selection(findings, options.selection, options.known);
  sort_for_output(findings);
  return findings;
}

/// Binding reads variables of section `env_vars` as those of the job; a migration moves them as they stand.
Config as_written(Config config, const SourceMap& sources) {
  if (!config.sections.contains(kBridgeEnvironmentSection)) return config;
  std::set<std::pair<SourceId, std::uint32_t>> places;
  for (const SourceId file : config.files) {
    SyntaxProblem problem;
    const std::optional<SyntaxNode> tree = parse_toml(file, sources, problem);
    const SyntaxNode* section = tree ? find(*tree, kBridgeEnvironmentSection) : nullptr;
    if (section == nullptr) continue;
    for (const SyntaxEntry& entry : section->entries) places.insert({file, entry.key_span.begin});
  }
  Config written = config;
  for (const auto& [path, setting] : config.settings) {
    if (section_of(path) != kEnvironmentSection ||
        !places.contains({setting.origin.key.source, setting.origin.key.begin}))
      continue;
    written.settings.erase(path);
    Setting variable = setting;
    variable.path = std::string(kBridgeEnvironmentSection) + path.substr(kEnvironmentSection.size());
    written.settings.emplace(variable.path, variable);
  }
  return written;
}

/// A file that is no TOML states no release, and cannot be edited.
void leave_target_to_the_command_line(Migration& migration, ConfigFormat format, const Stack& to) {
  std::erase_if(migration.steps, [](const MigrationStep& step) {
    return std::any_of(step.changes.begin(), step.changes.end(),
                       [](const KeyChange& change) { return section_of(change.path) == "target"; });
  });
  migration.notes.push_back(fmt::format(
      "{} is not edited: change it by hand, and check it with `capstan lint --target {}`; `capstan import` "
      "writes it as TOML, which `migrate` edits",
      format_name(format), to.name));
}

std::vector<KeyChange> all_changes(const Migration& migration) {
  std::vector<KeyChange> changes;
  for (const MigrationStep& step : migration.steps)
    changes.insert(changes.end(), step.changes.begin(), step.changes.end());
  changes.insert(changes.end(), migration.drops.begin(), migration.drops.end());
  return changes;
}

/// Nobody has to say by hand what holds without it.
std::vector<KeyChange> without_defaults(std::vector<KeyChange> changes, const SchemaView& to) {
  std::vector<KeyChange> out;
  std::set<std::string> left_out;
  for (const KeyChange& change : changes) {
    const KeySpec* spec = change.kind == KeyChange::Kind::set ? to.find(change.path).spec : nullptr;
    if (spec != nullptr && spec->has_default && spec->default_text.empty() &&
        spec->default_value == change.value)
      left_out.insert(change.path);
  }
  for (KeyChange& change : changes) {
    const bool is_left_out = (change.kind == KeyChange::Kind::set && left_out.contains(change.path)) ||
                             (change.kind == KeyChange::Kind::rename && left_out.contains(change.new_path));
    if (is_left_out) change = {KeyChange::Kind::unset, change.path, {}, {}};
    out.push_back(std::move(change));
  }
  return out;
}

void judge_edited(Workspace& workspace, const std::string& path, const MigrateFileOptions& options,
                  MigratedFile& result) {
  EditedReader reader;
  for (const auto& [name, texts] : result.texts) reader.texts[name] = texts.second;
  Sink sink;
  const SourceId edited = workspace.sources().add(path, result.text, SourceKind::file);
  const auto after = workspace.prepare(edited, reader, sink);
  if (after)
    result.after = findings_of(after->config, *after, edited, workspace, options, sink);
  else
    result.after = sink.take();
}

void judge_changed(Workspace& workspace, const PreparedConfig& before, SourceId file, const Stack& to,
                   const std::vector<KeyChange>& changes, const MigrateFileOptions& options,
                   MigratedFile& result) {
  PreparedConfig prepared = before;
  prepared.stack = {to, false, {}, {}};
  prepared.schema = &workspace.view_of(to);
  prepared.rules = &workspace.rules_for(to);
  prepared.shared = nullptr;
  Config changed = with_key_changes(before.config, changes);
  changed.broken.clear();
  Sink sink;
  bind(changed, *prepared.schema, sink);
  result.as_if_by_hand = true;
  result.after = findings_of(changed, prepared, file, workspace, options, sink);
}

}  // namespace

MigratedFile migrate_file(Workspace& old_release, Workspace& new_release, const std::string& path,
                          const Stack& to, const MigrateFileOptions& options) {
  Sink sink;
  const auto file = old_release.read_source(path, path, sink);
  if (!file) {
    MigratedFile result;
    result.problems = sink.take();
    return result;
  }
  return migrate_source(old_release, new_release, *file, to, options);
}

MigratedFile migrate_source(Workspace& old_release, Workspace& new_release, SourceId file, const Stack& to,
                            const MigrateFileOptions& options) {
  MigratedFile result;
  Sink sink;
  SourceMap& sources = old_release.sources();
  const auto before = old_release.prepare(file, sink);
  if (!before) {
    result.problems = sink.take();
    return result;
  }
  result.readable = true;
  result.source = file;
  result.from = before->stack;
  result.format = before->format;
  result.before = findings_of(before->config, *before, file, old_release, options, sink);

  const Config config = as_written(before->config, sources);
  const SchemaView& target = old_release.view_of(to);
  result.migration = plan_migration(config, *before->schema, target);
  if (options.keep_defaults) pin_defaults(target, result.migration);
  if (before->format != ConfigFormat::toml && before->stack.stack.name != to.name)
    leave_target_to_the_command_line(result.migration, before->format, to);
  std::vector<KeyChange> changes = all_changes(result.migration);
  if (before->format != ConfigFormat::toml) changes = without_defaults(std::move(changes), target);
  const EditPlan plan = plan_edits(changes, config, sources);
  result.by_hand = plan.by_hand;

  std::map<SourceId, std::vector<Edit>> by_source;
  for (const Edit& edit : plan.edits) by_source[edit.span.source].push_back(edit);
  result.text = sources[file].bytes();
  for (auto& [source, edits] : by_source) {
    const SourceFile& old = sources[source];
    std::optional<std::string> edited = apply_edits(old.bytes(), std::move(edits));
    if (!edited) throw UsageError(fmt::format("the edits of `{}` overlap; nothing was written", old.name()));
    if (*edited == old.bytes()) continue;
    if (source == file)
      result.text = *edited;
    else
      result.migration.notes.push_back(
          fmt::format("`{}` changes too: other configs that extend it must be migrated with it", old.name()));
    result.texts[old.name()] = {std::string(old.bytes()), std::move(*edited)};
  }
  if (plan.complete() && before->format == ConfigFormat::toml)
    judge_edited(new_release, sources[file].name(), options, result);
  else
    judge_changed(old_release, *before, file, to, changes, options, result);
  return result;
}

}  // namespace capstan
