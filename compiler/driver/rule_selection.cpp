#include "compiler/driver/rule_selection.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/codes.h"
#include "compiler/driver/report_options.h"
#include "compiler/driver/usage_error.h"
#include "compiler/schema/schema.h"

namespace capstan {
namespace {

bool matches(std::string_view selector, std::string_view code, std::string_view name) {
  return !selector.empty() && (code.starts_with(selector) || name == selector);
}

std::pair<std::string, Severity> split_severity(const std::string& text) {
  const auto equals = text.find('=');
  if (equals == std::string::npos || equals == 0) {
    throw UsageError(fmt::format("`--severity {}` must be CODE=LEVEL, such as CG004=warning", text));
  }
  return {text.substr(0, equals), parse_severity(text.substr(equals + 1))};
}

void verify_selector(const std::string& selector, const RuleSet& rules) {
  std::vector<std::string> known;
  for (const RuleItem& item : rules.items) {
    if (matches(selector, item.code, item.name)) return;
    if (!item.code.empty()) known.push_back(item.code);
    if (!item.name.empty()) known.push_back(item.name);
  }
  for (const CodeInfo& info : builtin_codes()) {
    if (matches(selector, info.code, info.name)) return;
    known.emplace_back(info.code);
    known.emplace_back(info.name);
  }
  const std::string near = nearest(selector, known);
  throw UsageError(
      fmt::format("no rule matches `{}`{}", selector, near.empty() ? "" : "; did you mean `" + near + "`?"));
}

}  // namespace

void add_selection_options(CLI::App& command, RuleSelection& selection) {
  command
      .add_option("--select", selection.select,
                  "only these rules: code, prefix of codes or name, separated by commas")
      ->delimiter(',')
      ->type_name("RULES");
  command.add_option("--ignore", selection.ignore, "not these rules")->delimiter(',')->type_name("RULES");
  command.add_option("--severity", selection.severity, "severity of a rule (repeatable)")
      ->delimiter(',')
      ->type_name("CODE=LEVEL");
}

void verify_selection(const RuleSelection& selection, const RuleSet& rules) {
  for (const std::string& selector : selection.select) verify_selector(selector, rules);
  for (const std::string& selector : selection.ignore) verify_selector(selector, rules);
  for (const std::string& text : selection.severity) verify_selector(split_severity(text).first, rules);
}

void apply_selection(const RuleSelection& selection, std::vector<Diagnostic>& diagnostics) {
  const auto any_matches = [](const std::vector<std::string>& selectors, const Diagnostic& diagnostic) {
    return std::any_of(selectors.begin(), selectors.end(), [&](const std::string& selector) {
      return matches(selector, diagnostic.code, diagnostic.name);
    });
  };
  std::erase_if(diagnostics, [&](const Diagnostic& diagnostic) {
    if (diagnostic.kind == FindingKind::problem) return false;
    return (!selection.select.empty() && !any_matches(selection.select, diagnostic)) ||
           any_matches(selection.ignore, diagnostic);
  });
  for (Diagnostic& diagnostic : diagnostics) {
    std::size_t longest = 0;
    for (const std::string& text : selection.severity) {
      const auto [selector, severity] = split_severity(text);
      if (matches(selector, diagnostic.code, diagnostic.name) && selector.size() >= longest) {
        longest = selector.size();
        diagnostic.severity = severity;
      }
    }
  }
}

}  // namespace capstan
