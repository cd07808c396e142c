#include "compiler/driver/fold_undecided.h"

#include <algorithm>
#include <set>
#include <string>

namespace capstan {

std::size_t undecided_rules(const Diagnostic& diagnostic) {
  if (diagnostic.code != "TG002") return 0;
  for (const auto& [name, value] : diagnostic.arguments) {
    if (name == "rules") return static_cast<std::size_t>(value.integer());
  }
  return 0;
}

void fold_undecided(std::vector<Diagnostic>& findings, RunSummary& summary) {
  std::set<std::string> facts(summary.undecided_facts.begin(), summary.undecided_facts.end());
  std::erase_if(findings, [&](const Diagnostic& diagnostic) {
    const bool of_the_target = diagnostic.code == "TG002" && !diagnostic.keys.empty() &&
                               std::all_of(diagnostic.keys.begin(), diagnostic.keys.end(),
                                           [](const std::string& key) { return key.starts_with("target."); });
    if (!of_the_target) return false;
    summary.undecided += undecided_rules(diagnostic);
    facts.insert(diagnostic.keys.begin(), diagnostic.keys.end());
    return true;
  });
  summary.undecided_facts.assign(facts.begin(), facts.end());
}

}  // namespace capstan
