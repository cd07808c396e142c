#include "compiler/fixes/audit_fixes.h"

#include <fmt/format.h>

#include "compiler/fixes/suggest.h"
#include "compiler/solve/repair.h"

namespace capstan {

std::vector<AuditFinding> audit_fixes(const RuleBook& book, SmtOptions options) {
  std::vector<AuditFinding> findings;
  for (const std::uint32_t position : book.index.checks()) {
    const RuleItem& item = book.index.item(position);
    if (item.fixes.empty()) continue;
    const Counterexample example = find_counterexample(book, position, options);
    if (example.answer != Answer::sat) continue;
    Config config;
    for (const Assignment& setting : example.settings) {
      if (!setting.set) continue;
      Setting entry;
      entry.path = book.rules.set->names.name(setting.fact);
      entry.value = setting.value;
      entry.origin.kind = OriginKind::assumed;
      config.settings[entry.path] = entry;
    }
    Subject subject(config, book);
    subject.facts = with_changes(subject.facts, example.settings);
    for (const ResolvedFix& fix : item.fixes) {
      if (!fix_can_work(subject, position, fix, options)) {
        findings.push_back(
            {AuditFinding::Kind::unsound_fix,
             position,
             fmt::format("fix `{}` does not clear the finding on {}", fix.title,
                         example.settings.empty() ? "an empty config" : describe(subject, example.settings)),
             {}});
      }
    }
  }
  return findings;
}

}  // namespace capstan
