#include "compiler/diagnostics/selection.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

/// How closely a selector names a code; 0 is no match.
std::size_t specificity(std::string_view selector, const KnownCode& code) {
  constexpr std::size_t kExact = 1000;
  if (selector.empty()) return 0;
  if (selector == code.code || selector == code.name) return kExact;
  if (selector == code.family) return 100;
  // Prefixes of codes: letters of the family, then digits. The longer the closer, always closer than a kind.
  if (code.code.starts_with(selector)) return 100 + selector.size();
  if (selector == finding_kind_name(code.kind)) return 10;
  if (selector == "all") return 1;
  return 0;
}

std::size_t closest(const std::vector<std::string>& selectors, const KnownCode& code) {
  std::size_t best = 0;
  for (const std::string& selector : selectors) best = std::max(best, specificity(selector, code));
  return best;
}

/// Without these nothing else can be trusted: a text, a rule or the target was not read, or a key or value
/// was not understood, so that no rule saw it.
bool always_reported(const Diagnostic& diagnostic) {
  return diagnostic.kind == FindingKind::problem && diagnostic.severity == Severity::error &&
         is_reading_problem(diagnostic.code);
}

}  // namespace

bool parse_severity(std::string_view word, Severity& severity) {
  for (const Severity candidate : {Severity::hint, Severity::warning, Severity::error}) {
    if (word != severity_name(candidate)) continue;
    severity = candidate;
    return true;
  }
  return false;
}

bool parse_severity_override(std::string_view text, std::pair<std::string, Severity>& override) {
  const auto equal = text.find('=');
  if (equal == std::string_view::npos || equal == 0) return false;
  override.first = std::string(text.substr(0, equal));
  return parse_severity(text.substr(equal + 1), override.second);
}

bool is_reading_problem(std::string_view code) {
  const std::string_view family = code.substr(0, 2);
  return family == "SY" || family == "RU" || family == "TY" || family == "TG" || family == "EX";
}

std::vector<KnownCode> builtin_known_codes() {
  std::vector<KnownCode> known;
  for (const CodeInfo& info : builtin_codes()) {
    known.push_back({std::string(info.code), std::string(info.name), {}, FindingKind::problem});
  }
  return known;
}

std::vector<std::string> unknown_selectors(const Selection& selection, const std::vector<KnownCode>& known) {
  std::vector<std::string> unknown;
  const auto check = [&](const std::string& selector) {
    const bool matches = std::any_of(known.begin(), known.end(),
                                     [&](const KnownCode& code) { return specificity(selector, code) > 0; });
    const bool is_kind = selector == "all" || selector == "problem" || selector == "rejects" ||
                         selector == "breaks" || selector == "advice";
    if (!matches && !is_kind) unknown.push_back(selector);
  };
  for (const std::string& selector : selection.select) check(selector);
  for (const std::string& selector : selection.ignore) check(selector);
  for (const auto& [selector, severity] : selection.severities) check(selector);
  return unknown;
}

std::size_t apply_selection(std::vector<Diagnostic>& diagnostics, const Selection& selection,
                            const std::vector<KnownCode>& known) {
  const bool keeps_all = selection.select.empty() && selection.ignore.empty() && selection.severities.empty();
  if (diagnostics.empty() || keeps_all) return 0;
  std::unordered_map<std::string_view, const KnownCode*> by_code;
  for (const KnownCode& code : known) by_code.emplace(code.code, &code);
  const auto dropped = [&](Diagnostic& diagnostic) {
    if (always_reported(diagnostic)) return false;
    KnownCode code{diagnostic.code, diagnostic.name, {}, diagnostic.kind};
    if (const auto found = by_code.find(diagnostic.code); found != by_code.end())
      code.family = found->second->family;
    const std::size_t selected = selection.select.empty() ? 1 : closest(selection.select, code);
    if (selected == 0 || closest(selection.ignore, code) >= selected) return true;
    std::size_t best = 0;
    for (const auto& [selector, severity] : selection.severities) {
      const std::size_t match = specificity(selector, code);
      if (match == 0 || match < best) continue;
      best = match;
      diagnostic.severity = severity;
    }
    return false;
  };
  const std::size_t before = diagnostics.size();
  std::erase_if(diagnostics, dropped);
  return before - diagnostics.size();
}

bool fails(const std::vector<Diagnostic>& diagnostics, Severity fail_level) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.severity >= fail_level; });
}

}  // namespace capstan
