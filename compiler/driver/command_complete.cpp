#include "compiler/driver/command_complete.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/driver/usage_error.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/edit.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/solve/complete.h"
#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

struct CompleteOptions {
  std::string file;
  std::vector<std::string> free, prefer;
  bool toml = false, write = false;
  ConfigOptions config;
  SolverOptions solver;
};

/// The config without what the changed keys hold in extended files, so that the answers stand in the file
/// itself, which alone is printed. UsageError for a key that must go from an extended file.
Config answers_in_main_file(Config config, const SourceMap& sources, const std::vector<KeyChange>& changes) {
  for (const KeyChange& change : changes) {
    const Setting* setting = config.find(change.path);
    if (setting == nullptr || setting->origin.kind != OriginKind::extended_file) continue;
    const std::string& file = sources[setting->origin.key.source].name();
    if (change.kind == KeyChange::Kind::unset)
      throw UsageError(
          fmt::format("`{}` is to hold its default and is open in `{}`, which `--toml` does not print; "
                      "`--write` changes that file",
                      change.path, file));
    config.settings.erase(change.path);
  }
  return config;
}

/// The changes as text: every file that they touch, by source.
std::string completed_text(SolveSession& session, const Completion& completion,
                           std::vector<KeyChange> changes, bool write) {
  for (const Assignment& value : completion.values) {
    const std::string& name = session.subject().name(value.fact);
    changes.push_back(
        {value.set ? KeyChange::Kind::set : KeyChange::Kind::unset, name, value.value, {}, true});
  }
  const SourceMap& sources = session.workspace().sources();
  const Config config =
      write ? session.prepared().config : answers_in_main_file(session.prepared().config, sources, changes);
  const EditPlan plan = plan_edits(changes, config, sources);
  for (const std::string& clause : plan.by_hand) std::fprintf(stderr, "capstan: %s\n", clause.c_str());
  std::string shown;
  for (const SourceId file : config.files) {
    std::vector<Edit> edits;
    std::copy_if(plan.edits.begin(), plan.edits.end(), std::back_inserter(edits),
                 [file](const Edit& edit) { return edit.span.source == file; });
    const std::optional<std::string> text = apply_edits(sources[file].bytes(), edits);
    if (!text) throw UsageError("the edits overlap; nothing was written");
    if (write && !edits.empty()) {
      if (const auto failure = replace_file(sources[file].name(), *text)) {
        throw UsageError(fmt::format("cannot write `{}`: {}", sources[file].name(), *failure));
      }
    }
    if (file == config.files.back()) shown = *text;
  }
  return shown;
}

bool has_value(const Completion& completion, FactId key) {
  return std::any_of(completion.values.begin(), completion.values.end(),
                     [key](const Assignment& value) { return value.fact == key; });
}

/// What the key holds after the framework's own rewrites.
Value effective_value(const SolveSession& session, const Completion& completion, FactId key) {
  Facts facts = with_changes(session.subject().facts, completion.values);
  return evaluate(session.book().rules, std::move(facts)).final_facts.values[key].value;
}

struct Wish {
  Assignment asked;
  bool met = false;
  Value effective;  ///< what the key holds after the framework's rewrites, where it is met
};

std::vector<Wish> judge_wishes(const SolveSession& session, const Completion& completion,
                               const std::vector<Assignment>& prefer) {
  std::vector<Wish> wishes;
  for (const Assignment& asked : prefer) {
    Wish wish;
    wish.asked = asked;
    wish.met = std::any_of(completion.values.begin(), completion.values.end(), [&](const Assignment& one) {
      return one.fact == asked.fact && one.value == asked.value;
    });
    if (wish.met) wish.effective = effective_value(session, completion, asked.fact);
    wishes.push_back(std::move(wish));
  }
  return wishes;
}

/// A line where the wish is not met, or as written only.
std::string describe(const SolveSession& session, const Wish& wish) {
  const std::string& path = session.subject().name(wish.asked.fact);
  const std::string value = to_text(wish.asked.value);
  if (!wish.met)
    return fmt::format("not met: `{} = {}`; `capstan why-not` says what stands against it\n", path, value);
  if (wish.effective == wish.asked.value) return "";
  return fmt::format("met as written only: the framework turns `{} = {}` into `{}`\n", path, value,
                     to_text(wish.effective));
}

std::string as_json(const SolveSession& session, const Completion& completion,
                    const std::vector<FactId>& open, const std::vector<KeyChange>& unread,
                    const std::vector<Wish>& judged) {
  std::vector<std::string> conflicts, unread_values, wishes, still_open, remaining;
  for (const MinimalConflict& conflict : completion.conflicts.conflicts)
    conflicts.push_back(json_of(session, conflict, {}));
  const bool completed = completion.answer == Answer::sat;
  for (const KeyChange& change : unread) {
    if (!completed) break;
    unread_values.push_back(
        change.kind == KeyChange::Kind::set
            ? fmt::format(R"({{"key":{},"value":{}}})", json_of_text(change.path), json_of(change.value))
            : fmt::format(R"({{"key":{},"unset":true}})", json_of_text(change.path)));
  }
  for (const Wish& wish : judged) {
    const std::string becomes =
        wish.met && wish.effective != wish.asked.value ? ",\"becomes\":" + json_of(wish.effective) : "";
    wishes.push_back(fmt::format(R"({{"key":{},"value":{},"met":{}{}}})",
                                 json_of_text(session.subject().name(wish.asked.fact)),
                                 json_of(wish.asked.value), wish.met, becomes));
  }
  for (const FactId key : open) {
    if (completed && !has_value(completion, key))
      still_open.push_back(json_of_text(session.subject().name(key)));
  }
  for (const std::uint32_t position : completion.remaining) {
    const RuleItem& item = session.subject().index().item(position);
    if (completed)
      remaining.push_back(fmt::format(R"({{"code":{},"name":{},"severity":"{}"}})", json_of_text(item.code),
                                      json_of_text(item.name), severity_name(item.severity)));
  }
  return json_document(fmt::format(
      R"({{"version":1,"answer":"{}","values":{},"unread":{},"open":{},"wishes":{},"remaining":{},"conflicts":{}}})",
      answer_name(completion.answer),
      json_of(session, completed ? completion.values : std::vector<Assignment>{}), json_list(unread_values),
      json_list(still_open), json_list(wishes), json_list(remaining), json_list(conflicts)));
}

int complete_file(const CompleteOptions& options) {
  if (options.write && options.file == "-")
    throw UsageError("standard input cannot be rewritten; `--toml` prints what it becomes");
  SolveSession session(with_project(options.config, options.file), options.solver);
  if (!session.open(options.file)) return kExitFindings;
  const bool json = options.solver.format == "json";
  if ((options.write || options.toml) && session.prepared().format != ConfigFormat::toml)
    throw UsageError("`--write` and `--toml` need a TOML file; the values are printed without them");
  if (options.toml && json)
    throw UsageError("`--toml` prints the file, `--format json` the values: one of them");
  CompleteRequest request;
  request.smt = session.smt();
  const OpenPaths open = session.open_paths(options.free);
  request.open = open.read;
  std::vector<std::string> wanted = open.unread;
  for (const FactId key : open.read) wanted.push_back(session.subject().name(key));
  if (wanted.empty())
    throw UsageError("no key is open: write `\"?\"` for its value, or name it with `--free KEY`");
  std::map<std::string, Value> unread_wishes;
  for (const std::string& wish : options.prefer) {
    if (wish == "scope") {
      request.widest_scope = true;
      continue;
    }
    if (wish.find('=') == std::string::npos)
      throw UsageError(fmt::format("`--prefer` takes KEY=VALUE or `scope`, not `{}`", wish));
    const auto [path, value] = session.read_assignment(wish);
    if (std::find(wanted.begin(), wanted.end(), path) == wanted.end())
      throw UsageError(
          fmt::format("`--prefer {0}` is about a key that is not open: add `--free {1}`", wish, path));
    if (const std::optional<FactId> key = session.find_key(path))
      request.prefer.push_back({*key, true, value});
    else
      unread_wishes[path] = value;
  }
  std::vector<KeyChange> unread_changes;
  for (const std::string& path : open.unread) {
    const auto wish = unread_wishes.find(path);
    if (wish == unread_wishes.end())
      unread_changes.push_back({KeyChange::Kind::unset, path, {}, {}, true});
    else
      unread_changes.push_back({KeyChange::Kind::set, path, wish->second, {}});
  }
  const Completion completion = complete(session.subject(), request);
  const std::string& stack = session.prepared().stack.stack.name;
  const bool completed = completion.answer == Answer::sat;
  const std::vector<Wish> wishes =
      completed ? judge_wishes(session, completion, request.prefer) : std::vector<Wish>{};
  std::string text;
  if (completed && (options.toml || options.write))
    text = completed_text(session, completion, unread_changes, options.write);
  if (json) {
    session.print(as_json(session, completion, request.open, unread_changes, wishes));
  } else if (completed) {
    std::string out =
        options.write ? fmt::format("completed {} ({})\n", safe_text(options.file), stack) : text;
    if (!options.toml) {
      for (const Assignment& value : completion.values) {
        out += value.set ? fmt::format("{} = {}\n", session.subject().name(value.fact), to_text(value.value))
                         : fmt::format("{}: unset (default {})\n", session.subject().name(value.fact),
                                       to_text(value.value));
      }
      for (const FactId key : request.open) {
        if (!has_value(completion, key))
          out += fmt::format("{}: stays open; no value of it is known to try, so write one\n",
                             session.subject().name(key));
      }
      for (const KeyChange& change : unread_changes) {
        out += change.kind == KeyChange::Kind::set
                   ? fmt::format("{} = {}\n", change.path, to_text(change.value))
                   : fmt::format("{}: unset (no rule of {} reads it)\n", change.path, stack);
      }
      for (const Wish& wish : wishes) out += describe(session, wish);
      for (const std::uint32_t position : completion.remaining) {
        const RuleItem& item = session.subject().index().item(position);
        out += fmt::format("{} stays: {} {}\n",
                           item.finding == FindingKind::advice ? "advice" : severity_name(item.severity),
                           item.code, item.name);
      }
    }
    session.print(out);
  } else if (completion.answer == Answer::unsat) {
    // With `--toml` standard output is the file, and nothing else.
    std::string out = fmt::format("no values of the open keys satisfy all rules of {}\n", stack);
    std::size_t number = 0;
    for (const MinimalConflict& conflict : completion.conflicts.conflicts) {
      out += fmt::format("  conflict {}\n{}", ++number,
                         describe_minimal_conflict(session, conflict, request.open, {}, 4));
    }
    if (!completion.conflicts.complete) out += "  there may be further conflicts\n";
    options.toml ? session.print_aside(out) : session.print(out);
  } else {
    const std::string out = "undecided within the limit; `--timeout` raises it\n";
    options.toml ? session.print_aside(out) : session.print(out);
  }
  const bool all = std::all_of(request.open.begin(), request.open.end(),
                               [&](FactId key) { return has_value(completion, key); });
  return completion.answer == Answer::sat && all ? kExitClean
         : completion.answer == Answer::sat      ? kExitUndecided
         : completion.answer == Answer::unsat    ? kExitFindings
                                                 : kExitUndecided;
}

}  // namespace

void add_complete_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<CompleteOptions>();
  CLI::App* command = program.add_subcommand("complete", "fill open keys (\"?\") so that everything holds");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  add_free_option(*command, options->free);
  command
      ->add_option(
          "--prefer", options->prefer,
          "a wish, stronger than defaults: KEY=VALUE, or `scope` for the widest capture scope (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("WISH");
  auto* toml = command->add_flag("--toml", options->toml, "print the completed file");
  command->add_flag("--write", options->write, "write the values into the file")->excludes(toml);
  command->footer(
      "What is chosen: values with which no rule forbids the config. Of these, in this order: wishes, the "
      "first\n"
      "most; for `--prefer scope`, layers captured at all; no warnings; no advice; defaults; for `--prefer "
      "scope`\n"
      "as many parts of the layers as there are; short lists; numbers near those of related keys.");
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] { exit_code = complete_file(*options); });
}

}  // namespace capstan
