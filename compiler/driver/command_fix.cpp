#include "compiler/driver/command_fix.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/distinct_paths.h"
#include "compiler/driver/fix_file.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/workspace.h"
#include "compiler/fixes/apply.h"
#include "compiler/ruleset/message.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct FixOptions {
  std::vector<std::string> files;
  bool diff = false;
  std::string format = "text";
  ConfigOptions config;
  SelectionOptions selection;
  FixFileOptions fix;
};

std::string place_of(const Diagnostic& diagnostic, const SourceMap& sources) {
  for (const Label& label : diagnostic.labels) {
    if (!label.primary || !label.span.exists()) continue;
    return place_text(sources, label.span);
  }
  return "";
}

/// What says that the search for a way out met its limit; null where it did not.
const Note* undecided_note(const Diagnostic& diagnostic) {
  const auto found = std::find_if(diagnostic.notes.begin(), diagnostic.notes.end(),
                                  [](const Note& note) { return note.text.starts_with("undecided: "); });
  return found == diagnostic.notes.end() ? nullptr : &*found;
}

std::string describe(const std::string& name, const FixedFile& result, const SourceMap& sources,
                     const FixOptions& options) {
  const std::string path = safe_text(name);
  std::string out;
  for (const FixStep& step : result.steps) {
    out += fmt::format("{}: {} {}: {} ({}, {})\n", path, step.code, step.name, step.title,
                       applicability_name(step.applicability), cost_class_name(step.cost));
  }
  for (const Diagnostic& diagnostic : result.left) {
    if (diagnostic.severity == Severity::hint) continue;
    out += fmt::format("{}: {} {}: {}\n", safe_text(place_of(diagnostic, sources)),
                       severity_name(diagnostic.severity), diagnostic.code, diagnostic.message);
    std::size_t number = 0;
    for (const Fix& fix : diagnostic.fixes) {
      out += fmt::format("  {}. {} ({}, {})\n", ++number, fix.title, applicability_name(fix.applicability),
                         cost_class_name(fix.cost));
    }
    if (!diagnostic.fixes.empty()) continue;
    const Note* undecided = undecided_note(diagnostic);
    out += undecided == nullptr
               ? "  no way out was found that breaks nothing else and leaves the model as it is\n"
               : fmt::format("  {}; `--timeout` raises it\n", undecided->text);
  }
  const auto any_way = [&](const auto& counts) {
    return std::any_of(result.left.begin(), result.left.end(), [&](const Diagnostic& one) {
      return one.severity != Severity::hint && std::any_of(one.fixes.begin(), one.fixes.end(), counts);
    });
  };
  if (result.format != ConfigFormat::toml) {
    if (any_way([](const Fix&) { return true; }))
      out += fmt::format(
          "{} is {}: change it by hand, or write it as TOML with `capstan import`, which `fix` can edit\n",
          path, format_name(result.format));
  } else if (any_way([](const Fix& fix) {
               return !fix.edits.empty() && fix.applicability != Applicability::display_only;
             }) &&
             !options.fix.unsafe) {
    out += "apply one with `--choose N`, or the best of each with `--unsafe`\n";
  } else if (any_way([](const Fix& fix) { return !fix.edits.empty(); }) && !options.fix.model) {
    out += "apply one with `--choose N`, or the best of each with `--model`\n";
  }
  if (result.steps.empty() && out.empty()) out = fmt::format("{}: nothing to fix\n", path);
  return out;
}

std::string as_json(const std::string& path, const FixedFile& result, const SourceMap& sources) {
  std::vector<std::string> steps, left;
  for (const FixStep& step : result.steps) {
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
    left.push_back(fmt::format(
        R"({{"code":{},"name":{},"severity":"{}","message":{},"place":{},"ways":{},"undecided":{}}})",
        json_of_text(diagnostic.code), json_of_text(diagnostic.name), severity_name(diagnostic.severity),
        json_of_text(diagnostic.message), json_of_text(place_of(diagnostic, sources)), json_list(ways),
        undecided_note(diagnostic) != nullptr));
  }
  std::vector<std::string> changed;
  for (const auto& [name, texts] : result.texts) changed.push_back(json_of_text(name));
  return fmt::format(R"({{"file":{},"stack":{},"applied":{},"left":{},"changed":{}}})", json_of_text(path),
                     json_of_text(result.stack), json_list(steps), json_list(left), json_list(changed));
}

int fix(FixOptions options) {
  const auto stdin_count = std::count(options.files.begin(), options.files.end(), "-");
  if (stdin_count > 0 && options.files.size() > 1) throw UsageError("standard input (`-`) goes alone");
  if (stdin_count > 0 && options.format == "json" && !options.diff)
    throw UsageError("with `-` the result goes to standard output; `--format json` needs `--diff` beside it");
  if (options.fix.choose > 0 && options.files.size() > 1) throw UsageError("`--choose` works on one file");
  options.files = distinct_paths(std::move(options.files));
  const std::optional<ProjectFile> project = project_for(options.files[0]);
  for (const std::string& path : options.files) {
    const std::optional<ProjectFile> other = project_for(path);
    if ((other ? other->path : "") != (project ? project->path : ""))
      throw UsageError("the files belong to different projects; fix them one by one");
  }
  if (project) {
    add_project(*project, options.config, options.selection);
  }
  Sink setup;
  Workspace workspace(options.config, setup);
  workspace.require_usable(setup);
  options.fix.known = known_codes(workspace.rules());
  options.fix.selection = make_selection(options.selection, options.fix.known);
  options.fix.date = today();
  bool errors_left = false;
  bool undecided = false;
  bool changes = false;
  bool failed = false;
  std::vector<std::string> documents;
  std::string out;
  for (const std::string& path : options.files) {
    const FixedFile result = fix_file(workspace, path, options.fix);
    if (!result.readable) {
      std::fputs(render_text(result.left, workspace.sources(), {}, {}).c_str(), stderr);
      errors_left = true;
      continue;
    }
    std::vector<std::string> written;
    bool whole = true;
    for (const auto& [name, texts] : result.texts) {
      changes = true;
      if (options.diff) {
        if (options.format == "text") out += unified_diff(name, texts.first, texts.second);
      } else if (name == "-") {
        out += texts.second;
      } else if (const auto failure = replace_file(name, texts.second)) {
        // What other files became stays to be told.
        fmt::print(stderr, "capstan: cannot write `{}`: {}{}\n", safe_text(name), *failure,
                   written.empty() ? "" : fmt::format("; {} was written before", joined(written, "and")));
        whole = false;
        break;
      } else {
        written.push_back("`" + name + "`");
      }
    }
    if (!whole) {
      failed = true;
      continue;
    }
    // Standard output is then the fixed text, or a patch, and nothing else.
    if (options.format == "text" && (path == "-" || options.diff)) {
      if (path == "-" && !options.diff && !result.texts.contains("-")) out += result.text;
      std::fputs(describe(path, result, workspace.sources(), options).c_str(), stderr);
    } else if (options.format == "json") {
      documents.push_back(as_json(path, result, workspace.sources()));
    } else {
      out += describe(path, result, workspace.sources(), options);
    }
    for (const Diagnostic& diagnostic : result.left) {
      errors_left = errors_left || diagnostic.severity == Severity::error;
      undecided = undecided || undecided_note(diagnostic) != nullptr;
    }
  }
  if (options.format == "json")
    out = json_document(fmt::format(R"({{"version":1,"files":{}}})", json_list(documents)));
  std::fwrite(out.data(), 1, out.size(), stdout);
  if (failed) return kExitUsage;
  if (undecided) return kExitUndecided;
  return errors_left || (options.diff && changes) ? kExitFindings : kExitClean;
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
  command->add_flag("--diff", options->diff,
                    "print a patch and write nothing; exit code 1 if anything would change");
  command->add_flag("--unsafe", options->fix.unsafe,
                    "also apply fixes that change numerics or what was asked for");
  command->add_flag("--model", options->fix.model, "also apply ways that change what defines the model");
  command
      ->add_option("--choose", options->fix.choose,
                   "apply way number N of the first finding whose ways are listed")
      ->check(CLI::Range(1, 1000))
      ->type_name("N");
  command->add_option("--format", options->format, "format of the answer")
      ->check(CLI::IsMember({"text", "json"}));
  command
      ->add_option("--timeout", options->fix.timeout_ms,
                   "limit for each question to the solver, in milliseconds")
      ->check(CLI::Range(1u, 3'600'000u));
  add_config_options(*command, options->config);
  add_selection_options(*command, options->selection);
  command->callback([options, &exit_code] { exit_code = fix(*options); });
}

}  // namespace capstan
