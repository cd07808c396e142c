#include "compiler/driver/command_rules_audit.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>

#include "compiler/driver/solve_json.h"
#include "compiler/driver/solve_report.h"
#include "compiler/driver/solve_session.h"
#include "compiler/fixes/audit_fixes.h"
#include "compiler/solve/audit.h"

namespace capstan {
namespace {

struct AuditOptions {
  std::vector<std::string> stacks;
  bool faults_only = false;
  ConfigOptions config;
  SolverOptions solver;
};

/// Whether a rule fires on any release that was audited; a rule may lack a key on some, not on all.
struct RuleLife {
  std::string code, name;
  bool fires = false;
};

int audit(const AuditOptions& options) {
  std::vector<std::string> stacks = options.stacks;
  std::map<std::uint32_t, RuleLife> lives;  // by item of the rule set, which is the same for every stack
  if (stacks.empty()) {
    for (const Stack& stack : builtin_schema().stacks()) stacks.push_back(stack.name);
  }
  std::size_t faults = 0, undecided = 0;
  std::vector<std::string> documents;
  std::string out;
  for (const std::string& stack : stacks) {
    SolveSession session(options.config, options.solver);
    session.open_empty(stack);
    const RuleProbes probes = collect_probes(session.book());
    const RuleAudit audit = audit_rules(session.subject(), probes, session.smt());
    std::vector<AuditFinding> findings = audit.findings;
    const std::vector<AuditFinding> fixes = audit_fixes(session.subject(), probes, audit, session.smt());
    findings.insert(findings.end(), fixes.begin(), fixes.end());
    for (std::uint32_t position = 0; position < session.book().index.size(); ++position) {
      const RuleItem& item = session.book().index.item(position);
      if (item.kind == RuleItem::Kind::define) continue;
      RuleLife& life = lives[session.book().index.rules().items[position]];
      life.code = item.code;
      life.name = item.name;
      life.fires = life.fires || audit.examples.contains(position);
    }
    std::size_t stack_faults = 0;
    std::vector<std::string> entries;
    std::string lines;
    for (const AuditFinding& finding : findings) {
      if (finding.is_fault()) ++stack_faults;
      if (finding.kind == AuditFinding::Kind::undecided) ++undecided;
      if (options.faults_only && !finding.is_fault()) continue;
      const RuleItem& item = session.book().index.item(finding.position);
      std::string others;
      std::vector<std::string> codes;
      for (const std::uint32_t other : finding.others) {
        const std::string& code = session.book().index.item(other).code;
        others += (others.empty() ? ": " : ", ") + code;
        codes.push_back(json_of_text(code));
      }
      lines += fmt::format("  {:<14} {} {}: {}{}\n", audit_kind_name(finding.kind), item.code, item.name,
                           finding.text, others);
      entries.push_back(fmt::format(R"({{"kind":"{}","fault":{},"code":{},"name":{},"text":{},"others":{}}})",
                                    audit_kind_name(finding.kind), finding.is_fault(),
                                    json_of_text(item.code), json_of_text(item.name),
                                    json_of_text(finding.text), json_list(codes)));
    }
    faults += stack_faults;
    // The number of checks is no news where faults alone are asked for, and changes with every rule.
    if (options.faults_only)
      out += fmt::format("{}: {}\n{}", stack, count_of(stack_faults, "fault", "faults"), lines);
    else
      out += fmt::format("{}: {}, {}\n{}", stack,
                         count_of(session.book().index.checks().size(), "check", "checks"),
                         count_of(stack_faults, "fault", "faults"), lines);
    documents.push_back(fmt::format(R"({{"stack":{},"checks":{},"faults":{},"findings":{}}})",
                                    json_of_text(stack), session.book().index.checks().size(), stack_faults,
                                    json_list(entries)));
  }
  std::vector<std::string> silent;
  if (options.stacks.empty()) {
    for (const auto& [item, life] : lives) {
      if (life.fires) continue;
      ++faults;
      silent.push_back(json_of_text(life.code));
      out += fmt::format("no release has a config that makes {} {} fire\n", life.code, life.name);
    }
  }
  if (options.solver.format == "json") {
    out = json_document(fmt::format(R"({{"version":1,"stacks":{},"fire_nowhere":{}}})", json_list(documents),
                                    json_list(silent)));
  }
  std::fwrite(out.data(), 1, out.size(), stdout);
  return faults > 0 ? kExitFindings : undecided > 0 ? kExitUndecided : kExitClean;
}

}  // namespace

void add_rules_audit_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<AuditOptions>();
  // Another command may have made `rules` already.
  const std::vector<CLI::App*> known =
      program.get_subcommands([](CLI::App* one) { return one->get_name() == "rules"; });
  CLI::App* rules = known.empty() ? nullptr : known.front();
  if (rules == nullptr) {
    rules = program.add_subcommand("rules", "the rules themselves");
    rules->require_subcommand(1);
  }
  CLI::App* command = rules->add_subcommand(
      "audit", "prove the rule set sound: no dead rule, no fix that fails, no unknown value");
  command->add_option("--stack", options->stacks, "only these stacks (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("STACK");
  command->add_flag("--faults-only", options->faults_only, "leave out implied and undecided rules");
  command->add_option("--rules", options->config.rule_folders, "folder of further rules (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("DIR");
  add_solver_options(*command, options->solver);
  command->remove_option(command->get_option("--emit"));  // thousands of questions, of many solvers
  command->callback([options, &exit_code] { exit_code = audit(*options); });
}

}  // namespace capstan
