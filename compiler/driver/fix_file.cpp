#include "compiler/driver/fix_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/facts/derive.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/suggest.h"
#include "compiler/ruleset/evaluate.h"
#include "grammar/source/source_file.h"

namespace capstan {
namespace {

constexpr std::size_t kMostFixes = 200;

/// Files as they will be: edited texts first, the disk behind them.
class EditedFiles : public FileReader {
 public:
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    const auto edited = texts.find(path);
    if (edited != texts.end()) return edited->second;
    return disk_reader().read(path, failure);
  }
  std::map<std::string, std::string> texts;
  std::map<std::string, std::string> originals;  ///< of the same files, as they were first read
};

struct Reading {
  std::vector<Diagnostic> diagnostics;
  std::vector<SourceId> files;
  std::string stack;
  ConfigFormat format = ConfigFormat::toml;
  /// Checks that are violated, but silent because a key they read is not readable as it stands.
  std::set<std::string> silent;
  bool whole = false;  ///< the file could be read through to the rules
};

Reading judge(Workspace& workspace, const std::string& path, const std::string& text,
              const EditedFiles& files, bool explain, const FixFileOptions& options,
              const std::set<std::string>* without_fixes = nullptr) {
  Reading reading;
  Sink sink;
  const SourceId source = workspace.sources().add(path, text, SourceKind::file);
  if (const auto prepared = workspace.prepare(source, files, sink)) {
    CheckOptions check_options;
    check_options.solver_timeout_ms = options.timeout_ms;
    check_options.explain = explain;
    check_options.without_fixes = without_fixes;
    check_and_suggest({prepared->config, *prepared->schema, *prepared->rules, prepared->stack,
                       workspace.sources(), prepared->shared},
                      check_options, sink);
    reading.diagnostics = sink.take();
    suppress_findings(reading.diagnostics, source, *prepared, workspace.sources(), options.known,
                      options.date);
    if (!prepared->config.broken.empty()) {
      const RuleSet& rules = *prepared->rules->set;
      const Facts facts = prepared->shared->facts_of(prepared->config);
      for (const Violation& violation : evaluate(*prepared->rules, facts).violations) {
        const RuleItem& item = rules.items[violation.item];
        if (!violation.undecided && item.kind == RuleItem::Kind::check)
          reading.silent.insert(item.code + " " + item.name);
      }
    }
    reading.files = prepared->config.files;
    reading.stack = prepared->stack.stack.name;
    reading.whole = true;
    reading.format = prepared->format;
  }
  if (!reading.whole) reading.diagnostics = sink.take();
  // A guess at a name or a word that clears nothing, or brings a finding, is no way out.
  for (Diagnostic& diagnostic : reading.diagnostics)
    std::erase_if(diagnostic.fixes, [](const Fix& fix) { return !fix.verified; });
  apply_selection(reading.diagnostics, options.selection, options.known);
  return reading;
}

std::string name_of(const Diagnostic& diagnostic) {
  return diagnostic.code + " " + diagnostic.name;
}

/// Findings by what they are about, places left out: an edit moves lines.
std::multiset<std::string> names_of(const std::vector<Diagnostic>& diagnostics, bool with_hints) {
  std::multiset<std::string> names;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity != Severity::hint || with_hints) names.insert(name_of(diagnostic));
  }
  return names;
}

std::ptrdiff_t times_found(const std::string& name, const std::vector<Diagnostic>& diagnostics) {
  return std::count_if(diagnostics.begin(), diagnostics.end(),
                       [&name](const Diagnostic& one) { return name_of(one) == name; });
}

/// Whether the way is taken unasked; for a hint only a safe one is.
bool allowed(const Fix& fix, const Diagnostic& finding, const FixFileOptions& options) {
  if (fix.edits.empty()) return false;
  if (finding.severity == Severity::hint) return fix.applicability == Applicability::safe;
  if (fix.applicability == Applicability::display_only) return options.model;
  return fix.applicability == Applicability::safe || options.unsafe;
}

/// Applies one fix; false when it does not clear the finding, adds another, or its edits do not fit.
bool try_fix(const Fix& fix, const Diagnostic& finding, Workspace& workspace, const std::string& path,
             const FixFileOptions& options, std::string& text, EditedFiles& files, Reading& reading,
             const std::set<std::string>* without_fixes = nullptr) {
  std::map<SourceId, std::vector<Edit>> by_source;
  for (const Edit& edit : fix.edits) by_source[edit.span.source].push_back(edit);
  EditedFiles edited = files;
  std::string main_text = text;
  for (const auto& [source, edits] : by_source) {
    const SourceFile& file = workspace.sources()[source];
    if (file.kind() != SourceKind::file && file.kind() != SourceKind::standard_input) return false;
    std::optional<std::string> after = apply_edits(file.bytes(), edits);
    if (!after) return false;
    if (file.name() == path)
      main_text = std::move(*after);
    else {
      edited.originals.emplace(file.name(), file.bytes());
      edited.texts[file.name()] = std::move(*after);
    }
  }
  Reading after = judge(workspace, path, main_text, edited, false, options, without_fixes);
  if (!after.whole) return false;
  // A way out of an error may leave a hint; one out of a hint may not, or two could take turns.
  const bool with_hints = finding.severity == Severity::hint;
  const std::multiset<std::string> had = names_of(reading.diagnostics, with_hints);
  const std::multiset<std::string> has = names_of(after.diagnostics, with_hints);
  const std::string name = name_of(finding);
  if (times_found(name, after.diagnostics) >= times_found(name, reading.diagnostics)) return false;
  std::multiset<std::string> expected = had;
  for (const std::string& silent : reading.silent) {
    if (!had.contains(silent)) expected.insert(silent);
  }
  if (!std::includes(expected.begin(), expected.end(), has.begin(), has.end())) return false;
  text = std::move(main_text);
  files = std::move(edited);
  reading = std::move(after);
  return true;
}

}  // namespace

FixedFile fix_file(Workspace& workspace, const std::string& path, const FixFileOptions& options) {
  Sink sink;
  if (const auto source = workspace.read_source(path, "<stdin>", sink))
    return fix_text(workspace, path, std::string(workspace.sources()[*source].bytes()), options);
  FixedFile result;
  result.left = sink.take();
  result.readable = false;
  return result;
}

namespace {

/// One file on its way: what is written so far, and what is found in it.
struct Work {
  std::string text;
  EditedFiles files;
  Reading reading;
  std::vector<FixStep> steps;
};

bool take(const Fix& fix, const Diagnostic& finding, Workspace& workspace, const std::string& path,
          const FixFileOptions& options, Work& work, const std::set<std::string>* without_fixes = nullptr) {
  if (!try_fix(fix, finding, workspace, path, options, work.text, work.files, work.reading, without_fixes))
    return false;
  work.steps.push_back({finding.code, finding.name, finding.message, fix.title, fix.applicability, fix.cost});
  return true;
}

/// Step by step, all that is taken unasked. Ways out are searched again only for findings of which one may
/// still be taken; when that comes to its end, once more for all: a step may give another finding a way.
void take_allowed(Workspace& workspace, const std::string& path, const FixFileOptions& options, Work& work) {
  std::set<std::string> failed;
  const auto is_allowed = [&](const Diagnostic& finding) {
    return [&](const Fix& fix) { return allowed(fix, finding, options); };
  };
  std::size_t steps = 0;
  do {
    steps = work.steps.size();
    std::set<std::string> without = failed;
    for (bool changed = true; changed && work.steps.size() < kMostFixes;) {
      changed = false;
      for (const Diagnostic& finding : work.reading.diagnostics) {
        if (std::none_of(finding.fixes.begin(), finding.fixes.end(), is_allowed(finding)))
          without.insert(finding.fingerprint);
      }
      for (std::size_t index = 0; index < work.reading.diagnostics.size() && !changed; ++index) {
        const Diagnostic finding = work.reading.diagnostics[index];
        if (without.contains(finding.fingerprint)) continue;
        changed = std::any_of(finding.fixes.begin(), finding.fixes.end(), [&](const Fix& fix) {
          return allowed(fix, finding, options) &&
                 take(fix, finding, workspace, path, options, work, &without);
        });
        if (changed) continue;
        failed.insert(finding.fingerprint);
        without.insert(finding.fingerprint);
      }
    }
    if (work.steps.size() > steps)
      work.reading = judge(workspace, path, work.text, work.files, false, options);
  } while (work.steps.size() > steps && work.steps.size() < kMostFixes);
}

/// The first finding with ways out, hints after all others; null where none has any.
const Diagnostic* first_with_ways(const std::vector<Diagnostic>& diagnostics, bool with_hints) {
  const Diagnostic* hint = nullptr;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.fixes.empty()) continue;
    if (diagnostic.severity != Severity::hint) return &diagnostic;
    if (hint == nullptr) hint = &diagnostic;
  }
  return with_hints ? hint : nullptr;
}

/// Numbers mean the ways as they are listed: after what is taken unasked. Where nothing is listed then, the
/// first finding of the file as it stands is meant.
void take_chosen(Workspace& workspace, const std::string& path, const FixFileOptions& options, Work& work) {
  const Work untouched = work;
  take_allowed(workspace, path, options, work);
  const Diagnostic* found = first_with_ways(work.reading.diagnostics, false);
  if (found == nullptr) {
    work = untouched;
    found = first_with_ways(work.reading.diagnostics, true);
  }
  if (found == nullptr)
    throw UsageError(
        fmt::format("`--choose {}`: no finding of {} has a way out to choose from", options.choose, path));
  const Diagnostic finding = *found;
  if (options.choose > finding.fixes.size()) {
    throw UsageError(fmt::format("{} has {} way{} out, there is no number {}", finding.code,
                                 finding.fixes.size(), finding.fixes.size() == 1 ? "" : "s", options.choose));
  }
  const Fix& chosen = finding.fixes[options.choose - 1];
  if (chosen.edits.empty())
    throw UsageError(fmt::format("way {} of {} cannot be applied to a file: {}", options.choose, finding.code,
                                 chosen.title));
  if (!take(chosen, finding, workspace, path, options, work))
    throw UsageError(fmt::format("way {} of {} takes more than what can be written to files: {}",
                                 options.choose, finding.code, chosen.title));
  take_allowed(workspace, path, options, work);
}

}  // namespace

FixedFile fix_text(Workspace& workspace, const std::string& path, const std::string& original,
                   const FixFileOptions& options) {
  FixedFile result;
  Work work;
  work.text = original;
  work.reading = judge(workspace, path, original, work.files, false, options);
  if (options.choose > 0 && work.reading.whole)
    take_chosen(workspace, path, options, work);
  else
    take_allowed(workspace, path, options, work);
  // Steps need no explanations; what is left is shown with them.
  Reading& reading = work.reading;
  if (!reading.diagnostics.empty()) reading = judge(workspace, path, work.text, work.files, true, options);
  if (work.text != original) result.texts[path] = {original, work.text};
  for (const auto& [name, after] : work.files.texts) {
    result.texts[name] = {work.files.originals.at(name), after};
  }
  result.steps = std::move(work.steps);
  result.text = work.text;
  result.left = reading.diagnostics;
  result.stack = reading.stack;
  result.format = reading.format;
  result.readable = reading.whole;
  return result;
}

}  // namespace capstan
