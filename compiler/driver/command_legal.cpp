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
  ConfigOptions config;
  SolverOptions solver;
};

std::string reason_line(const SolveSession& session, const LegalValue& value, std::size_t i) {
  const RuleItem& item = session.subject().index().item(value.against[i].position);
  std::string because;
  for (const Participant& participant : value.against[i].participants) {
    if (participant.fact == value.assignment.fact) continue;
    because += fmt::format("{}{} ({})", because.empty() ? "" : ", ", statement(session, participant.fact, {}),
                           session.place_of(participant.fact));
  }
  return fmt::format("      {} {}: {}{}\n", item.code, item.name, value.reasons[i],
                     because.empty() ? "" : "; because of " + because);
}

int legal(const LegalOptions& options) {
  SolveSession session(with_project(options.config, options.file), options.solver);
  if (!session.open(options.file)) return kExitFindings;
  const std::optional<FactId> key = session.find_key(options.key);
  const bool json = options.solver.format == "json";
  LegalValues values;
  if (key) values = find_legal_values(session.subject(), *key, session.smt());
  bool undecided = false;
  bool any_legal = !key.has_value();
  for (const LegalValue& value : values.values) {
    any_legal = any_legal || value.against.empty();
    for (const Conflict& conflict : value.against)
      undecided = undecided || conflict.minimal == Answer::undecided;
  }
  const int exit_code = undecided ? kExitUndecided : any_legal ? kExitClean : kExitFindings;
  if (json) {
    std::vector<std::string> entries;
    for (const LegalValue& value : values.values) {
      std::vector<std::string> against;
      for (std::size_t i = 0; i < value.against.size(); ++i)
        against.push_back(json_of(session, value.against[i], value.reasons[i], {value.assignment}));
      entries.push_back(fmt::format(R"({{"value":{},"set":{},"current":{},"legal":{},"against":{}}})",
                                    json_of(value.assignment.value), value.assignment.set, value.current,
                                    value.against.empty(), json_list(against)));
    }
    session.print(json_document(fmt::format(
        R"({{"version":1,"key":{},"constrained":{},"all_listed":{},"values":{}}})", json_of_text(options.key),
        key.has_value(), key.has_value() && values.listed_all, json_list(entries))));
    return exit_code;
  }
  if (!key) {
    session.print(fmt::format("`{}`: no rule of {} reads this key; its type alone limits it\n", options.key,
                              session.prepared().stack.stack.name));
    return kExitClean;
  }
  std::string allowed, excluded;
  for (const LegalValue& value : values.values) {
    const std::string name = value.what + (value.current ? "  (now)" : "");
    if (value.against.empty()) {
      allowed += fmt::format("    {}\n", name);
      continue;
    }
    excluded += fmt::format("    {}\n", name);
    for (std::size_t i = 0; i < value.against.size(); ++i) excluded += reason_line(session, value, i);
  }
  std::string out = fmt::format("`{}` with the rest of {} ({}):\n", options.key, options.file,
                                session.prepared().stack.stack.name);
  out += "  legal\n" + (allowed.empty() ? "    none of the values tried\n" : allowed);
  if (!excluded.empty()) out += "  excluded\n" + excluded;
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
  add_config_options(*command, options->config);
  add_solver_options(*command, options->solver);
  command->callback([options, &exit_code] { exit_code = legal(*options); });
}

}  // namespace capstan
