#include "compiler/driver/command_compare.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/driver/usage_error.h"
#include "compiler/fixes/suggest.h"
#include "compiler/solve/compare.h"
#include "compiler/solve/core.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/fill.h"

namespace capstan {
namespace {

struct CompareOptions {
  std::string from, to, file;
  ConfigOptions config;
  SolverOptions solver;
};

/// What one stack says of a file.
struct Judged {
  std::map<std::string, Diagnostic> findings;  ///< hints left out, by code and message
  /// Whether the open keys can be filled; nothing where none is open that rules read.
  std::optional<Answer> filled;
  /// "CG001 unknown-graph-implementation, ...": unsat, the rules of one minimal conflict
  std::string against;
};

/// The open keys of the file ("?"), as complete() would fill them.
void judge_open_keys(const PreparedConfig& prepared, const SmtOptions& options, Judged& judged) {
  const RuleBook& book = prepared.shared->book();
  const Subject subject(prepared.config, book);
  std::vector<FactId> open;
  for (const std::string& path : prepared.config.open) {
    FactId fact = 0;
    if (prepared.config.find(path) != nullptr && book.rules.set->names.find(path, fact) &&
        is_changeable(subject, fact))
      open.push_back(fact);
  }
  if (open.empty()) return;
  const std::vector<OpenKey> keys = open_keys(subject, open);
  std::set<std::uint32_t> rules;
  judged.filled = fill(subject, keys, open, rules, options).answer;
  if (judged.filled != Answer::unsat) return;
  const ConflictSet conflicts = find_conflicts(subject, keys, &open, 1, options);
  for (const MinimalConflict& conflict : conflicts.conflicts) {
    for (const std::uint32_t position : conflict.rules) {
      const RuleItem& item = book.index.item(position);
      judged.against += fmt::format("{}{} {}", judged.against.empty() ? "" : ", ", item.code, item.name);
    }
  }
}

Judged judge_file(const std::string& file, const CompareOptions& options, const SmtOptions& smt,
                  const std::string& stack, bool& readable) {
  ConfigOptions config = with_project(options.config, file);
  config.target = stack;
  Sink sink;
  Workspace workspace(config, sink);
  Judged judged;
  workspace.require_usable(sink);
  const auto source = workspace.read_source(file, "<stdin>", sink);
  const auto prepared = source ? workspace.prepare(*source, sink) : std::nullopt;
  if (prepared) {
    judge_open_keys(*prepared, smt, judged);
    // Evaluation finds what is wrong; the explanations are not shown here.
    CheckOptions check_options;
    check_options.explain = false;
    check({prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources()},
          check_options, sink);
  }
  readable = readable && prepared.has_value();
  if (!readable) std::fputs(render_text(sink.diagnostics(), workspace.sources(), {}, {}).c_str(), stderr);
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    if (diagnostic.severity == Severity::hint) continue;
    // Which keys take part may differ from release to release; what is wrong does not.
    judged.findings.emplace(diagnostic.code + " " + diagnostic.message, diagnostic);
  }
  return judged;
}

std::string filled_text(const Judged& judged, const std::string& stack) {
  switch (*judged.filled) {
    case Answer::sat:
      return fmt::format("  open keys can be filled on {}\n", stack);
    case Answer::unsat:
      return fmt::format("  no values are left for the open keys on {}: {}; `capstan complete` says why\n",
                         stack, judged.against.empty() ? "undecided which rules" : judged.against);
    case Answer::undecided:
      return fmt::format(
          "  whether the open keys can be filled on {}: undecided within the limit; "
          "`--timeout` raises it\n",
          stack);
  }
  return "";
}

std::string filled_json(const Judged& judged) {
  if (!judged.filled) return "null";
  return *judged.filled == Answer::sat     ? R"("yes")"
         : *judged.filled == Answer::unsat ? R"("no")"
                                           : R"("undecided")";
}

int compare_file(const CompareOptions& options) {
  stack_named(builtin_schema(), options.from);
  stack_named(builtin_schema(), options.to);
  bool readable = true;
  SmtOptions smt;
  smt.timeout_ms = options.solver.timeout_ms;
  if (options.solver.emit == "smt2") smt.transcript = std::make_shared<std::string>();
  const Judged judged_before = judge_file(options.file, options, smt, options.from, readable);
  if (!readable) return kExitFindings;
  const Judged judged_after = judge_file(options.file, options, smt, options.to, readable);
  if (!readable) return kExitFindings;
  const auto& before = judged_before.findings;
  const auto& after = judged_after.findings;
  if (smt.transcript && smt.transcript->empty())
    throw UsageError(
        "`--emit smt2`: no question is asked, since the file has no open key (`\"?\"`) that a rule reads: "
        "its "
        "rules are evaluated, not solved");
  std::vector<const Diagnostic*> gone, added;
  for (const auto& [key, diagnostic] : before) {
    if (!after.contains(key)) gone.push_back(&diagnostic);
  }
  bool forbidden = false;
  for (const auto& [key, diagnostic] : after) {
    if (before.contains(key)) continue;
    added.push_back(&diagnostic);
    forbidden = forbidden || diagnostic.severity == Severity::error;
  }
  forbidden = forbidden || (judged_after.filled == Answer::unsat && judged_before.filled != Answer::unsat);
  const bool undecided =
      judged_before.filled == Answer::undecided || judged_after.filled == Answer::undecided;
  if (smt.transcript) {
    std::fputs(smt.transcript->c_str(), stdout);
  } else if (options.solver.format == "json") {
    const auto list = [](const std::vector<const Diagnostic*>& diagnostics) {
      std::vector<std::string> out;
      for (const Diagnostic* one : diagnostics) {
        out.push_back(fmt::format(R"({{"code":{},"name":{},"severity":"{}","message":{}}})",
                                  json_of_text(one->code), json_of_text(one->name),
                                  severity_name(one->severity), json_of_text(one->message)));
      }
      return json_list(out);
    };
    std::fputs(json_document(
                   fmt::format(
                       R"({{"version":1,"from":{},"to":{},"file":{},"added":{},"gone":{},"filled":[{},{}]}})",
                       json_of_text(options.from), json_of_text(options.to), json_of_text(options.file),
                       list(added), list(gone), filled_json(judged_before), filled_json(judged_after)))
                   .c_str(),
               stdout);
  } else {
    std::string out = fmt::format("{}: {} -> {}\n", safe_text(options.file), options.from, options.to);
    for (const Diagnostic* one : added)
      out += fmt::format("  new   {} {} {}: {}\n", severity_name(one->severity), one->code, one->name,
                         one->message);
    for (const Diagnostic* one : gone)
      out += fmt::format("  gone  {} {} {}: {}\n", severity_name(one->severity), one->code, one->name,
                         one->message);
    if (added.empty() && gone.empty()) out += "  no difference\n";
    if (judged_before.filled) out += filled_text(judged_before, options.from);
    if (judged_after.filled) out += filled_text(judged_after, options.to);
    std::fputs(out.c_str(), stdout);
  }
  if (undecided) return kExitUndecided;
  return forbidden ? kExitFindings : kExitClean;
}

std::string settings_text(const SolveSession& session, const Witness& witness) {
  std::string out;
  for (const Assignment& setting : witness.settings) {
    out += fmt::format("      {} = {}\n", session.subject().name(setting.fact), to_text(setting.value));
  }
  return out.empty() ? "      (an empty config)\n" : out;
}

int compare_in_general(const CompareOptions& options) {
  SolveSession before(options.config, options.solver);
  before.open_empty(options.from);
  // Both sides must share one rule set: fact ids and rules are then the same numbers.
  const Stack& after_stack = stack_named(before.workspace().schema(), options.to);
  const RuleBook after(before.workspace().view_of(after_stack), before.workspace().rules_for(after_stack));
  const StackDifference difference = compare_stacks(before.book(), after, before.smt());
  const auto item_of = [&](const RuleDifference& one, bool newer) -> const RuleItem& {
    return newer ? after.index.item(one.position) : before.book().index.item(one.position);
  };
  if (options.solver.format == "json") {
    const auto list = [&](const std::vector<RuleDifference>& differences, bool newer) {
      std::vector<std::string> out;
      for (const RuleDifference& one : differences) {
        const RuleItem& item = item_of(one, newer);
        out.push_back(fmt::format(R"({{"code":{},"name":{},"message":{},"witness":{}}})",
                                  json_of_text(item.code), json_of_text(item.name), json_of_text(one.message),
                                  json_of(before, one.witness.settings)));
      }
      return json_list(out);
    };
    const auto names = [](const std::vector<std::string>& keys) {
      std::vector<std::string> out;
      for (const std::string& key : keys) out.push_back(json_of_text(key));
      return json_list(out);
    };
    before.print(json_document(fmt::format(
        R"({{"version":1,"from":{},"to":{},"newly_forbidden":{},"newly_allowed":{},"keys_gone":{},"keys_new":{},"undecided":{}}})",
        json_of_text(options.from), json_of_text(options.to), list(difference.newly_forbidden, true),
        list(difference.newly_allowed, false), names(difference.keys_gone), names(difference.keys_new),
        difference.undecided.size())));
  } else {
    std::string out = fmt::format("{} -> {}\n", options.from, options.to);
    const auto list = [&](const char* title, const std::vector<RuleDifference>& differences, bool newer) {
      out += fmt::format("  {}: {}\n", title, differences.size());
      for (const RuleDifference& one : differences) {
        const RuleItem& item = item_of(one, newer);
        out += fmt::format("    {} {}: {}\n{}", item.code, item.name, one.message,
                           settings_text(before, one.witness));
      }
    };
    list("newly forbidden", difference.newly_forbidden, true);
    list("newly allowed", difference.newly_allowed, false);
    const auto keys = [&](const char* title, const std::vector<std::string>& names) {
      out += fmt::format("  {}: {}\n", title, names.size());
      for (const std::string& name : names) out += fmt::format("    {}\n", name);
    };
    keys("keys that go away", difference.keys_gone);
    keys("new keys", difference.keys_new);
    if (!difference.undecided.empty())
      out += fmt::format("  undecided within the limit: {}; `--timeout` raises it\n",
                         count_of(difference.undecided.size(), "rule", "rules"));
    before.print(out);
  }
  return difference.undecided.empty() ? kExitClean : kExitUndecided;
}

}  // namespace

void add_compare_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App* command =
      program.add_subcommand("compare", "say what changes between two stacks, for a config or in general");
  command->add_option("--from", options->from, "the stack that configs are written for")
      ->required()
      ->type_name("STACK");
  command->add_option("--to", options->to, "the stack that they shall run on")
      ->required()
      ->type_name("STACK");
  command
      ->add_option("file", options->file,
                   "config file; without one, differences in general, each with a smallest witness")
      ->type_name("FILE");
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] {
    if (!options->config.target.empty())
      throw UsageError("`--target` does not go with `--from` and `--to`, which name the stacks");
    const ConfigOptions& config = options->config;
    if (options->file.empty() &&
        !(config.overrides.empty() && config.env_files.empty() && config.input_format.empty() &&
          config.run.empty() && !config.env_from_process))
      throw UsageError(
          "without a file the rules of both stacks are compared: there is no config that `--set`, "
          "`--env-file`, "
          "`--env-from-process`, `--input-format` or `--run` could be about");
    exit_code = options->file.empty() ? compare_in_general(*options) : compare_file(*options);
  });
}

}  // namespace capstan
