// Weak stand-ins for rooms that have no inhabitant yet.
#include <utility>

#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/resolve.h"

#define CAPSTAN_PENDING __attribute__((weak))

namespace capstan {

CAPSTAN_PENDING std::vector<RuleFile> builtin_rule_files() {
  return {};
}
CAPSTAN_PENDING const std::vector<std::string>& builtin_phases() {
  static const std::vector<std::string> none;
  return none;
}
CAPSTAN_PENDING std::vector<RuleFile> load_rule_folder(const std::string&, SourceMap&, Sink&) {
  return {};
}
CAPSTAN_PENDING RuleSet resolve(const std::vector<RuleFile>&, const std::vector<std::string>&, const Schema&,
                                Sink&) {
  return {};
}
CAPSTAN_PENDING ActiveRules select(const RuleSet& rules, const Stack&) {
  return {&rules, {}};
}
CAPSTAN_PENDING Evaluated evaluate_expression(const TypedExpr&, const Facts&) {
  return {};
}
CAPSTAN_PENDING Evaluation evaluate(const ActiveRules&, Facts facts) {
  return {{}, std::move(facts)};
}

}  // namespace capstan
