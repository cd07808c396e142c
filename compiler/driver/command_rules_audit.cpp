#include "compiler/driver/command_rules_audit.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

int audit(const AuditOptions& options) {
  std::vector<std::string> stacks = options.stacks;
  if (stacks.empty()) {
    for (const Stack& stack : builtin_schema().stacks()) stacks.push_back(stack.name);
  }
  std::size_t faults = 0, undecided = 0;
  std::vector<std::string> documents;
  std::string out;
  for (const std::string& stack : stacks) {
    SolveSession session(options.config, options.solver);
    if (!session.open_empty(stack)) return kExitUsage;
    std::vector<AuditFinding> findings = audit_rules(session.book(), session.smt());
    const std::vector<AuditFinding> fixes = audit_fixes(session.book(), session.smt());
    findings.insert(findings.end(), fixes.begin(), fixes.end());
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
    out += fmt::format("{}: {}, {}\n{}", stack,
                       count_of(session.book().index.checks().size(), "check", "checks"),
                       count_of(stack_faults, "fault", "faults"), lines);
    documents.push_back(fmt::format(R"({{"stack":{},"checks":{},"faults":{},"findings":{}}})",
                                    json_of_text(stack), session.book().index.checks().size(), stack_faults,
                                    json_list(entries)));
  }
  if (options.solver.format == "json")
    out = json_document(fmt::format(R"({{"version":1,"stacks":{}}})", json_list(documents)));
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
  command->callback([options, &exit_code] { exit_code = audit(*options); });
}

}  // namespace capstan
