#include "compiler/driver/command_legal.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "compiler/driver/project_options.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/solve/legal.h"

namespace capstan {
namespace {

struct LegalOptions {
  std::string file, key;
  std::vector<std::string> free;
  ConfigOptions config;
  SolverOptions solver;
};

std::string reason_line(const SolveSession& session, const LegalValue& value, std::size_t i) {
  const RuleItem& item = session.subject().index().item(value.opposition.against[i].position);
  std::string because;
  for (const Participant& participant : value.opposition.against[i].participants) {
    if (participant.fact == value.assignment.fact) continue;
    because += fmt::format("{}{} ({})", because.empty() ? "" : ", ", statement(session, participant.fact, {}),
                           session.place_of(participant.fact));
  }
  return fmt::format("      {} {}: {}{}\n", item.code, item.name, value.opposition.reasons[i],
                     (because.empty() ? "" : "; because of " + because) +
                         (value.opposition.against[i].minimal == Answer::undecided
                              ? "; undecided whether each of these takes part, `--timeout` raises the limit"
                              : ""));
}

int legal(const LegalOptions& options) {
  SolveSession session(with_project(options.config, options.file), options.solver);
  if (!session.open(options.file)) return kExitFindings;
  const std::optional<FactId> key = session.find_key(options.key);
  const bool json = options.solver.format == "json";
  LegalValues values;
  const std::vector<FactId> open = session.open_paths(options.free).read;
  if (key) values = find_legal_values(session.subject(), *key, open, session.smt());
  bool undecided = false;
  bool any_legal = !key.has_value();
  for (const LegalValue& value : values.values) {
    any_legal = any_legal || value.opposition.answer == Answer::sat;
    undecided = undecided || value.opposition.answer == Answer::undecided;
    for (const Conflict& conflict : value.opposition.against)
      undecided = undecided || conflict.minimal == Answer::undecided;
  }
  const int exit_code = undecided ? kExitUndecided : any_legal ? kExitClean : kExitFindings;
  if (json) {
    std::vector<std::string> entries;
    for (const LegalValue& value : values.values) {
      std::vector<std::string> against;
      const Opposition& opposition = value.opposition;
      for (std::size_t i = 0; i < opposition.against.size(); ++i)
        against.push_back(json_of(session, opposition.against[i], opposition.reasons[i], {value.assignment}));
      entries.push_back(fmt::format(
          R"({{"value":{},"set":{},"current":{},"answer":"{}","legal":{},"against":{},"conflict":{},"warnings":{}}})",
          json_of(value.assignment.value), value.assignment.set, value.current,
          answer_name(opposition.answer), opposition.answer == Answer::sat, json_list(against),
          opposition.conflict ? json_of(session, *opposition.conflict, {value.assignment}) : "null",
          json_of(session, opposition.warnings)));
    }
    session.print(json_document(fmt::format(
        R"({{"version":1,"key":{},"constrained":{},"all_listed":{},"others_excluded_by":{},"all_filled":{},"conflict":{},"elsewhere":{},"values":{}}})",
        json_of_text(options.key), key.has_value(), key.has_value() && values.listed_all,
        json_of(session, values.against_others), key.has_value() && values.filled_all,
        values.always ? json_of(session, *values.always, {}) : "null", json_of(session, values.elsewhere),
        json_list(entries))));
    return exit_code;
  }
  if (!key) {
    session.print(fmt::format("`{}`: no rule of {} reads this key; its type alone limits it\n", options.key,
                              session.prepared().stack.stack.name));
    return kExitClean;
  }
  std::string allowed, excluded, undecided_values;
  for (const LegalValue& value : values.values) {
    const std::string name = value.what + (value.current ? "  (now)" : "");
    const Opposition& opposition = value.opposition;
    if (opposition.answer == Answer::undecided) {
      undecided_values += fmt::format("    {}\n", name);
      continue;
    }
    std::string& list = opposition.answer == Answer::sat ? allowed : excluded;
    list += fmt::format("    {}\n", name);
    for (std::size_t i = 0; i < opposition.against.size(); ++i) list += reason_line(session, value, i);
    if (opposition.conflict) {
      list += "      leaves no value for the open keys\n";
      list += describe_minimal_conflict(session, *opposition.conflict, open, {value.assignment}, 8);
    }
    for (const std::uint32_t position : opposition.warnings) {
      const RuleItem& item = session.subject().index().item(position);
      list += fmt::format("      warning {} {}\n", item.code, item.name);
    }
  }
  std::string out = fmt::format("`{}` with the rest of {} ({}):\n", options.key, options.file,
                                session.prepared().stack.stack.name);
  out += "  legal\n" + (!allowed.empty()           ? allowed
                        : undecided_values.empty() ? "    none of the values tried\n"
                                                   : "    none that was decided\n");
  if (!values.against_others.empty()) {
    std::string names;
    for (const std::uint32_t position : values.against_others) {
      const RuleItem& item = session.subject().index().item(position);
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", item.code, item.name);
    }
    excluded += fmt::format("    every other word\n      {}\n", names);
  }
  if (!excluded.empty()) out += "  excluded\n" + excluded;
  if (!undecided_values.empty())
    out += "  undecided within the limit; `--timeout` raises it\n" + undecided_values;
  if (values.always) {
    out += "  whatever the value is, none is left for the open keys\n";
    std::vector<FactId> about = open;
    if (std::find(about.begin(), about.end(), *key) == about.end()) about.push_back(*key);
    out += describe_minimal_conflict(session, *values.always, about, {}, 4);
  }
  if (!values.elsewhere.empty()) {
    std::string names;
    for (const std::uint32_t position : values.elsewhere) {
      const RuleItem& item = session.subject().index().item(position);
      names += fmt::format("{}{} {}", names.empty() ? "" : ", ", item.code, item.name);
    }
    out += fmt::format("  not about this key, but broken: {}; `capstan lint` says more\n", names);
  }
  if (!values.filled_all)
    out +=
        "  open keys have further values; tried are those that rules, the schema and related keys suggest\n";
  if (!values.listed_all)
    out += "  the key has further values; listed are those that rules, the schema and related keys suggest\n";
  session.print(out);
  return exit_code;
}

}  // namespace

void add_legal_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<LegalOptions>();
  CLI::App* command =
      program.add_subcommand("legal", "list the values of one key that the rest of a config allows");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("key", options->key, "the key, such as model.cuda_graph_impl")
      ->required()
      ->type_name("KEY");
  add_free_option(*command, options->free);
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] { exit_code = legal(*options); });
}

}  // namespace capstan
