#include "compiler/driver/command_fix.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/suggest.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

constexpr int kMostFixes = 200;

struct FixOptions {
  std::vector<std::string> files;
  bool diff = false, unsafe = false;
  std::size_t choose = 0;
  std::string format = "text";
  std::uint32_t timeout_ms = 2000;
  ConfigOptions config;
  SelectionOptions selection;
  Selection selected;  ///< read from `selection`
  std::vector<KnownCode> known;
};

/// Files as they will be: edited texts first, the disk behind them.
class EditedFiles : public FileReader {
 public:
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    const auto edited = texts.find(path);
    if (edited != texts.end()) return edited->second;
    return disk_reader().read(path, failure);
  }
  std::map<std::string, std::string> texts;
};

struct Reading {
  std::vector<Diagnostic> diagnostics;
  std::vector<SourceId> files;
  std::string stack;
  ConfigFormat format = ConfigFormat::toml;
  bool whole = false;  ///< the file could be read through to the rules
};

Reading lint(Workspace& workspace, const std::string& path, const std::string& text, const EditedFiles& files,
             const FixOptions& options) {
  Reading reading;
  Sink sink;
  const SourceId source = workspace.sources().add(path, text, SourceKind::file);
  if (const auto prepared = workspace.prepare(source, files, sink)) {
    CheckOptions check_options;
    check_options.solver_timeout_ms = options.timeout_ms;
    check_and_suggest(
        {prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources()},
        check_options, sink);
    reading.files = prepared->config.files;
    reading.stack = prepared->stack.stack.name;
    reading.format = prepared->format;
    reading.whole = true;
    reading.diagnostics = sink.take();
    suppress_findings(reading.diagnostics, source, *prepared, workspace.sources(), options.known);
  } else {
    reading.diagnostics = sink.take();
  }
  apply_selection(reading.diagnostics, options.selected, options.known);
  return reading;
}

/// Findings by what they are about, places left out: an edit moves lines.
std::multiset<std::string> names_of(const std::vector<Diagnostic>& diagnostics) {
  std::multiset<std::string> names;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.severity == Severity::hint) continue;
    names.insert(diagnostic.code + " " + diagnostic.name);
  }
  return names;
}

struct Step {
  std::string code, name, message, title;
  Applicability applicability;
  CostClass cost;
};

struct FileResult {
  std::vector<Step> steps;
  std::vector<Diagnostic> left;
  std::map<std::string, std::pair<std::string, std::string>> texts;  // path: before, after
  std::string stack;
  ConfigFormat format = ConfigFormat::toml;
  bool readable = true;
};

bool allowed(const Fix& fix, const FixOptions& options, bool chosen) {
  if (fix.edits.empty() || fix.applicability == Applicability::display_only) return false;
  return fix.applicability == Applicability::safe || options.unsafe || chosen;
}

/// Applies one fix; false when it does not clear the finding, adds another, or its edits do not fit.
bool try_fix(const Fix& fix, const Diagnostic& finding, Workspace& workspace, const std::string& path,
             const FixOptions& options, std::string& text, EditedFiles& files, Reading& reading) {
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
    else
      edited.texts[file.name()] = std::move(*after);
  }
  Reading after = lint(workspace, path, main_text, edited, options);
  if (!after.whole) return false;
  const std::multiset<std::string> had = names_of(reading.diagnostics);
  const std::multiset<std::string> has = names_of(after.diagnostics);
  const std::string name = finding.code + " " + finding.name;
  if (has.count(name) >= had.count(name)) return false;
  if (!std::includes(had.begin(), had.end(), has.begin(), has.end())) return false;
  text = std::move(main_text);
  files = std::move(edited);
  reading = std::move(after);
  return true;
}

FileResult fix_file(Workspace& workspace, const std::string& path, const FixOptions& options) {
  FileResult result;
  Sink sink;
  const auto first = workspace.read_source(path, "<stdin>", sink);
  if (!first) {
    result.left = sink.take();
    result.readable = false;
    return result;
  }
  std::string text(workspace.sources()[*first].bytes());
  const std::string original = text;
  EditedFiles files;
  Reading reading = lint(workspace, path, text, files, options);
  bool choice_used = options.choose == 0;
  std::set<std::string> given_up;
  for (int round = 0; round < kMostFixes; ++round) {
    bool changed = false;
    for (std::size_t index = 0; index < reading.diagnostics.size() && !changed; ++index) {
      const Diagnostic finding = reading.diagnostics[index];
      if (finding.fixes.empty() || given_up.contains(finding.fingerprint)) continue;
      std::vector<const Fix*> candidates;
      if (!choice_used) {
        if (options.choose > finding.fixes.size()) {
          throw UsageError(fmt::format("{} has {} ways out, there is no number {}", finding.code,
                                       finding.fixes.size(), options.choose));
        }
        const Fix& chosen = finding.fixes[options.choose - 1];
        if (!allowed(chosen, options, true))
          throw UsageError(fmt::format("way {} of {} cannot be applied to a file: {}", options.choose,
                                       finding.code, chosen.title));
        candidates.push_back(&chosen);
        choice_used = true;
      } else {
        for (const Fix& fix : finding.fixes) {
          if (allowed(fix, options, false)) candidates.push_back(&fix);
        }
      }
      for (const Fix* fix : candidates) {
        if (!try_fix(*fix, finding, workspace, path, options, text, files, reading)) continue;
        result.steps.push_back(
            {finding.code, finding.name, finding.message, fix->title, fix->applicability, fix->cost});
        changed = true;
        break;
      }
      if (!changed) given_up.insert(finding.fingerprint);
    }
    if (!changed) break;
  }
  if (text != original) result.texts[path] = {original, text};
  for (const auto& [name, after] : files.texts) {
    ReadFailure failure;
    result.texts[name] = {disk_reader().read(name, failure).value_or(""), after};
  }
  result.left = reading.diagnostics;
  result.stack = reading.stack;
  result.format = reading.format;
  result.readable = reading.whole;
  return result;
}

std::string place_of(const Diagnostic& diagnostic, const SourceMap& sources) {
  for (const Label& label : diagnostic.labels) {
    if (!label.primary || !label.span.exists()) continue;
    return place_text(sources, label.span);
  }
  return "";
}

std::string describe(const std::string& path, const FileResult& result, const SourceMap& sources,
                     const FixOptions& options) {
  std::string out;
  for (const Step& step : result.steps) {
    out += fmt::format("{}: {} {}: {} ({}, {})\n", path, step.code, step.name, step.title,
                       applicability_name(step.applicability), cost_class_name(step.cost));
  }
  for (const Diagnostic& diagnostic : result.left) {
    if (diagnostic.severity == Severity::hint) continue;
    out += fmt::format("{}: {} {}: {}\n", place_of(diagnostic, sources), severity_name(diagnostic.severity),
                       diagnostic.code, diagnostic.message);
    std::size_t number = 0;
    for (const Fix& fix : diagnostic.fixes) {
      out += fmt::format("  {}. {} ({}, {})\n", ++number, fix.title, applicability_name(fix.applicability),
                         cost_class_name(fix.cost));
    }
    if (diagnostic.fixes.empty())
      out += "  no way out was found that breaks nothing else and leaves the model as it is\n";
  }
  const bool has_ways = std::any_of(result.left.begin(), result.left.end(), [](const Diagnostic& one) {
    return !one.fixes.empty() && one.severity != Severity::hint;
  });
  if (has_ways && result.format != ConfigFormat::toml)
    out += fmt::format(
        "{} is {}: change it by hand, or write it as TOML with `capstan import`, which `fix` can edit\n",
        path, format_name(result.format));
  else if (has_ways && !options.unsafe)
    out += "apply one with `--choose N`, or the best of each with `--unsafe`\n";
  if (result.steps.empty() && out.empty()) out = fmt::format("{}: nothing to fix\n", path);
  return out;
}

std::string as_json(const std::string& path, const FileResult& result, const SourceMap& sources) {
  std::vector<std::string> steps, left;
  for (const Step& step : result.steps) {
    steps.push_back(fmt::format(R"({{"code":{},"name":{},"title":{},"applicability":"{}","cost":"{}"}})",
                                json_of_text(step.code), json_of_text(step.name), json_of_text(step.title),
                                applicability_name(step.applicability), cost_class_name(step.cost)));
  }
  for (const Diagnostic& diagnostic : result.left) {
    std::vector<std::string> ways;
    for (const Fix& fix : diagnostic.fixes) {
      ways.push_back(fmt::format(R"({{"title":{},"applicability":"{}","cost":"{}","verified":{}}})",
                                 json_of_text(fix.title), applicability_name(fix.applicability),
                                 cost_class_name(fix.cost), fix.verified));
    }
    left.push_back(fmt::format(R"({{"code":{},"name":{},"severity":"{}","message":{},"place":{},"ways":{}}})",
                               json_of_text(diagnostic.code), json_of_text(diagnostic.name),
                               severity_name(diagnostic.severity), json_of_text(diagnostic.message),
                               json_of_text(place_of(diagnostic, sources)), json_list(ways)));
  }
  std::vector<std::string> changed;
  for (const auto& [name, texts] : result.texts) changed.push_back(json_of_text(name));
  return fmt::format(R"({{"file":{},"stack":{},"applied":{},"left":{},"changed":{}}})", json_of_text(path),
                     json_of_text(result.stack), json_list(steps), json_list(left), json_list(changed));
}

int fix(const FixOptions& given) {
  if (given.choose > 0 && given.files.size() > 1) throw UsageError("`--choose` works on one file");
  Sink setup;
  Workspace workspace(given.config, setup);
  if (!workspace.ok()) {
    std::fputs(render_text(setup.diagnostics(), workspace.sources(), {}, {}).c_str(), stderr);
    return kExitFindings;
  }
  FixOptions options = given;
  options.known = known_codes(workspace.rules());
  options.selected = make_selection(options.selection, options.known);
  bool errors_left = false;
  std::vector<std::string> documents;
  std::string out;
  for (const std::string& path : options.files) {
    const FileResult result = fix_file(workspace, path, options);
    if (!result.readable) {
      std::fputs(render_text(result.left, workspace.sources(), {}, {}).c_str(), stderr);
      errors_left = true;
      continue;
    }
    for (const auto& [name, texts] : result.texts) {
      if (options.diff) {
        out += unified_diff(name, texts.first, texts.second);
      } else if (name == "-") {
        out += texts.second;
      } else if (const auto failure = replace_file(name, texts.second)) {
        throw UsageError(fmt::format("cannot write `{}`: {}", name, *failure));
      }
    }
    if (path == "-" && !options.diff) {
      if (result.texts.empty()) out += std::string(workspace.sources()[0].bytes());
      std::fputs(describe(path, result, workspace.sources(), options).c_str(), stderr);
    } else if (options.format == "json") {
      documents.push_back(as_json(path, result, workspace.sources()));
    } else {
      out += describe(path, result, workspace.sources(), options);
    }
    for (const Diagnostic& diagnostic : result.left)
      errors_left = errors_left || diagnostic.severity == Severity::error;
  }
  if (options.format == "json")
    out = json_document(fmt::format(R"({{"version":1,"files":{}}})", json_list(documents)));
  std::fwrite(out.data(), 1, out.size(), stdout);
  return errors_left ? kExitFindings : kExitClean;
}

}  // namespace

void add_fix_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<FixOptions>();
  CLI::App* command = program.add_subcommand("fix", "apply verified fixes to configs, or show the ways out");
  command
      ->add_option("files", options->files,
                   "config files, or - for standard input (the result goes to standard output)")
      ->required()
      ->type_name("FILE");
  command->add_flag("--diff", options->diff, "show what would change and write nothing");
  command->add_flag("--unsafe", options->unsafe,
                    "also apply fixes that change numerics or what was asked for");
  command->add_option("--choose", options->choose, "apply way number N of the first finding")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  command->add_option("--format", options->format, "format of the answer")
      ->check(CLI::IsMember({"text", "json"}));
  command
      ->add_option("--timeout", options->timeout_ms, "limit for each question to the solver, in milliseconds")
      ->check(CLI::Range(1u, 3'600'000u));
  add_config_options(*command, options->config);
  add_selection_options(*command, options->selection);
  command->callback([options, &exit_code] { exit_code = fix(*options); });
}

}  // namespace capstan
