#include "compiler/driver/migration_report.h"

#include <algorithm>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/driver/solve_json.h"
#include "compiler/fixes/apply.h"

namespace capstan {
namespace {

std::size_t errors_in(const std::vector<Diagnostic>& findings) {
  return count_severities(findings).errors;
}

std::string count_words(const std::vector<Diagnostic>& findings) {
  const std::size_t errors = errors_in(findings);
  const std::size_t others = findings.size() - errors;
  return fmt::format("{} error{}, {} other finding{}", errors, errors == 1 ? "" : "s", others,
                     others == 1 ? "" : "s");
}

const Note* why_of(const Diagnostic& finding) {
  const auto found = std::find_if(finding.notes.begin(), finding.notes.end(),
                                  [](const Note& note) { return note.kind == Note::Kind::why; });
  return found == finding.notes.end() ? nullptr : &*found;
}

std::string place_of(const Diagnostic& finding, const SourceMap& sources) {
  const Label* label = shown_label(finding);
  return label == nullptr ? "" : place_text(sources, label->span);
}

std::string line_of(const Diagnostic& finding, const SourceMap& sources) {
  const std::string place = place_of(finding, sources);
  return fmt::format("{}: {} {} {}\n", place.empty() ? "capstan" : safe_text(place), finding.code,
                     severity_name(finding.severity), safe_text(finding.message));
}

std::set<std::string> codes_of(const std::vector<Diagnostic>& findings) {
  std::set<std::string> codes;
  for (const Diagnostic& finding : findings) codes.insert(finding.code);
  return codes;
}

std::string findings_json(const std::vector<Diagnostic>& findings, const SourceMap& sources) {
  std::vector<std::string> out;
  for (const Diagnostic& finding : findings) {
    const Note* why = why_of(finding);
    out.push_back(fmt::format(R"({{"code":{},"name":{},"severity":"{}","message":{},"place":{},"why":{}}})",
                              json_of_text(finding.code), json_of_text(finding.name),
                              severity_name(finding.severity), json_of_text(finding.message),
                              json_of_text(place_of(finding, sources)),
                              why == nullptr ? "null" : json_of_text(why->text)));
  }
  return json_list(out);
}

std::string texts_json(const std::vector<std::string>& texts) {
  std::vector<std::string> out;
  for (const std::string& text : texts) out.push_back(json_of_text(text));
  return json_list(out);
}

const char* change_name(KeyChange::Kind kind) {
  switch (kind) {
    case KeyChange::Kind::set:
      return "set";
    case KeyChange::Kind::unset:
      return "unset";
    case KeyChange::Kind::add:
      return "add";
    case KeyChange::Kind::remove:
      return "remove";
    case KeyChange::Kind::rename:
      return "rename";
    case KeyChange::Kind::drop_table:
      return "drop_table";
  }
  return "";
}

std::string change_json(const KeyChange& change) {
  std::string out =
      fmt::format(R"({{"kind":"{}","key":{})", change_name(change.kind), json_of_text(change.path));
  if (change.kind == KeyChange::Kind::rename)
    out += fmt::format(R"(,"new_key":{})", json_of_text(change.new_path));
  if (change.kind == KeyChange::Kind::set) out += fmt::format(R"(,"value":{})", json_of(change.value));
  return out + "}";
}

std::string steps_json(const Migration& migration) {
  std::vector<std::string> steps;
  for (const MigrationStep& step : migration.steps) {
    std::vector<std::string> changes;
    for (const KeyChange& change : step.changes) changes.push_back(change_json(change));
    steps.push_back(
        fmt::format(R"({{"reason":{},"changes":{}}})", json_of_text(step.reason), json_list(changes)));
  }
  return json_list(steps);
}

}  // namespace

std::string describe_changes(const MigratedFile& file, const Stack& to) {
  std::string out;
  const auto add = [&out](const std::string& line) { out += "- " + safe_text(line) + "\n"; };
  for (const MigrationStep& step : file.migration.steps) add(step.reason);
  for (const std::string& clause : file.by_hand) add("by hand: " + clause);
  for (const std::string& clause : file.migration.lost) add("cannot be carried over: " + clause);
  for (const ChangedDefault& changed : file.migration.defaults) {
    add(fmt::format("left out: `{}` was {} by default, and is {} in {}", changed.path,
                    to_text(changed.before), to_text(changed.after), to.name));
  }
  for (const std::string& note : file.migration.notes) add("note: " + note);
  return out;
}

std::string describe_verdicts(const MigratedFile& file, const Stack& to, const SourceMap& before,
                              const SourceMap& after) {
  std::string out = fmt::format("{}: {}\n", stack_words(file.from), count_words(file.before));
  for (const Diagnostic& finding : file.before) out += line_of(finding, before);
  out += fmt::format("{}{}: {}\n", to.name, file.as_if_by_hand ? ", with what is to be done by hand" : "",
                     count_words(file.after));
  const std::set<std::string> known = codes_of(file.before);
  for (const Diagnostic& finding : file.after) {
    out += line_of(finding, file.as_if_by_hand ? before : after);
    const Note* why = why_of(finding);
    if (!known.contains(finding.code) && why != nullptr) out += "  why: " + safe_text(why->text) + "\n";
  }
  return out;
}

std::string migration_json(const std::string& path, const MigratedFile& file, const SourceMap& before,
                           const SourceMap& after, bool written) {
  std::vector<std::string> defaults, changed;
  for (const ChangedDefault& one : file.migration.defaults) {
    defaults.push_back(fmt::format(R"({{"key":{},"before":{},"after":{}}})", json_of_text(one.path),
                                   json_of(one.before), json_of(one.after)));
  }
  for (const auto& [name, texts] : file.texts) {
    changed.push_back(fmt::format(R"({{"file":{},"diff":{}}})", json_of_text(name),
                                  json_of_text(unified_diff(name, texts.first, texts.second))));
  }
  const auto side = [](const std::vector<Diagnostic>& findings, const SourceMap& sources) {
    return fmt::format(R"({{"errors":{},"others":{},"findings":{}}})", errors_in(findings),
                       findings.size() - errors_in(findings), findings_json(findings, sources));
  };
  return fmt::format(
      R"({{"file":{},"from":{},"from_assumed":{},"from_reason":{},"complete":{},)"
      R"("steps":{},"by_hand":{},"lost":{},"defaults":{},"notes":{},"changed":{},"written":{},)"
      R"("before":{},"after":{}}})",
      json_of_text(path), json_of_text(file.from.stack.name), file.from.assumed,
      json_of_text(file.from.reason), is_complete(file), steps_json(file.migration), texts_json(file.by_hand),
      texts_json(file.migration.lost), json_list(defaults), texts_json(file.migration.notes),
      json_list(changed), written, side(file.before, before),
      side(file.after, file.as_if_by_hand ? before : after));
}

std::string unreadable_json(const std::string& path, const MigratedFile& file, const SourceMap& sources) {
  return fmt::format(R"({{"file":{},"problems":{}}})", json_of_text(path),
                     findings_json(file.problems, sources));
}

bool is_complete(const MigratedFile& file) {
  return file.readable && file.by_hand.empty() && file.migration.lost.empty() && errors_in(file.after) == 0;
}

}  // namespace capstan
