#include "compiler/driver/command_why_not.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "compiler/driver/project_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/legal.h"

namespace capstan {
namespace {

struct WhyNotOptions {
  std::string file, wanted;
  std::vector<std::string> free;
  ConfigOptions config;
  SolverOptions solver;
};

int why_not(const WhyNotOptions& options) {
  SolveSession session(with_project(options.config, options.file), options.solver);
  if (!session.open(options.file)) return kExitFindings;
  const auto [path, value] = session.read_assignment(options.wanted);
  const std::optional<FactId> key = session.find_key(path);
  const bool json = options.solver.format == "json";
  const std::string said = fmt::format("`{} = {}`", path, to_text(value));
  const std::string& stack = session.prepared().stack.stack.name;
  if (!key) {
    session.print(json ? json_document(fmt::format(
                             R"({{"version":1,"key":{},"value":{},"allowed":true,"against":[],"ways":[]}})",
                             json_of_text(path), json_of(value)))
                       : fmt::format("{}: no rule of {} reads this key\n", said, stack));
    return kExitClean;
  }
  const Assignment wanted{*key, !value.is_none(),
                          value.is_none() ? default_choice(session.subject(), *key).value : value};
  const std::vector<FactId> open = session.open_paths(options.free).read;
  const WhyNot answer = explain_why_not(session.subject(), wanted, open, session.smt());
  const Opposition& opposition = answer.opposition;
  const bool allowed = opposition.answer == Answer::sat;
  if (json) {
    std::vector<std::string> against, ways;
    for (std::size_t i = 0; i < opposition.against.size(); ++i)
      against.push_back(json_of(session, opposition.against[i], opposition.reasons[i], {wanted}));
    for (const Repair& way : answer.ways.found) ways.push_back(json_of(session, way));
    session.print(json_document(fmt::format(
        R"({{"version":1,"key":{},"value":{},"answer":"{}","allowed":{},"against":{},"conflict":{},"warnings":{},"ways":{},"complete":{}}})",
        json_of_text(path), json_of(value), answer_name(opposition.answer), allowed, json_list(against),
        opposition.conflict ? json_of(session, *opposition.conflict, {wanted}) : "null",
        json_of(session, opposition.warnings), json_list(ways), answer.ways.complete)));
  } else {
    std::string out;
    if (allowed) {
      out = fmt::format("{}: nothing stands against it ({})\n", said, stack);
    } else if (opposition.answer == Answer::undecided) {
      out = fmt::format("{}: undecided within the limit; `--timeout` raises it ({})\n", said, stack);
    } else {
      if (opposition.against.empty()) {
        out = fmt::format("{}: it leaves no value for the open keys ({})\n", said, stack);
        if (opposition.conflict)
          out += describe_minimal_conflict(session, *opposition.conflict, open, {wanted}, 4);
      } else {
        out = fmt::format("{}: {} against it ({})\n", said,
                          opposition.against.size() == 1
                              ? "one rule stands"
                              : fmt::format("{} rules stand", opposition.against.size()),
                          stack);
      }
      for (std::size_t i = 0; i < opposition.against.size(); ++i)
        out += describe_conflict(session, opposition.against[i], opposition.reasons[i], {wanted});
      if (answer.ways.found.empty()) {
        out += answer.ways.complete
                   ? "no change of other settings allows it (what defines the model stays)\n"
                   : "no change that allows it was found within the limit; `--timeout` raises it\n";
      } else {
        out += "ways to allow it, cheapest first:\n";
        for (std::size_t i = 0; i < answer.ways.found.size(); ++i)
          out += describe_repair(session, answer.ways.found[i], i + 1);
      }
    }
    for (const std::uint32_t position : opposition.warnings) {
      const RuleItem& item = session.subject().index().item(position);
      out += fmt::format("it would warn: {} {}\n", item.code, item.name);
    }
    for (const std::uint32_t position : answer.cured) {
      const RuleItem& item = session.subject().index().item(position);
      out += fmt::format("it would clear {} {}\n", item.code, item.name);
    }
    session.print(out);
  }
  const bool undecided = opposition.answer == Answer::undecided ||
                         std::any_of(opposition.against.begin(), opposition.against.end(),
                                     [](const Conflict& one) { return one.minimal == Answer::undecided; }) ||
                         (answer.ways.found.empty() && !answer.ways.complete);
  return undecided ? kExitUndecided : allowed ? kExitClean : kExitFindings;
}

}  // namespace

void add_why_not_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<WhyNotOptions>();
  CLI::App* command =
      program.add_subcommand("why-not", "say what stands against a value, and what would allow it");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("wanted", options->wanted, "the wanted setting")->required()->type_name("KEY=VALUE");
  add_free_option(*command, options->free);
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] { exit_code = why_not(*options); });
}

}  // namespace capstan
