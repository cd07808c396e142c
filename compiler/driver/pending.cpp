// Weak stand-ins for rooms that have no inhabitant yet.
#include "compiler/ruleset/resolve.h"
#include "compiler/solve/check.h"
#include "grammar/override/override_parser.h"

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
CAPSTAN_PENDING void check(const CheckRequest&, const CheckOptions&, Sink&) {}
CAPSTAN_PENDING std::optional<Override> parse_override(SourceId, const SourceMap&, OverrideMode,
                                                       SyntaxProblem& problem) {
  problem.message = "overrides cannot be read yet";
  return std::nullopt;
}

}  // namespace capstan
