#include "compiler/driver/selection_options.h"

#include <utility>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/codes.h"
#include "compiler/driver/rule_description.h"
#include "compiler/driver/usage_error.h"
#include "compiler/schema/schema.h"

namespace capstan {
namespace {

/// An option that asks for what is never done would be accepted and ignored. A code that is a warning in
/// places (an unlisted value of an open list) may be named.
void refuse_always_reported(const std::string& selector) {
  for (const CodeInfo& info : builtin_codes()) {
    if (selector != info.code && selector != info.name) continue;
    if (info.severity != Severity::error || !is_reading_problem(info.code) || info.code == "TY005") return;
    throw UsageError(fmt::format(
        "`{}` says that something was not read, which is always an error; a comment or a baseline "
        "can hold it back",
        selector));
  }
}

}  // namespace

void add_selection_options(CLI::App& command, SelectionOptions& options) {
  command
      .add_option(
          "--select", options.select,
          "only these findings: codes, beginnings of codes, names, families or kinds, separated by commas")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("RULES");
  command.add_option("--ignore", options.ignore, "not these findings")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("RULES");
  command.add_option("--severity", options.severity, "severity of findings")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("RULES=LEVEL");
}

std::vector<KnownCode> known_codes(const RuleSet& rules) {
  std::vector<KnownCode> known = builtin_known_codes();
  for (const RuleItem& item : rules.items) {
    if (!item.code.empty()) known.push_back({item.code, item.name, family_of(item), item.finding});
  }
  return known;
}

Selection make_selection(const SelectionOptions& options, const std::vector<KnownCode>& known) {
  Selection selection;
  selection.select = options.select;
  selection.ignore = options.ignore;
  for (const std::string& text : options.severity) {
    std::pair<std::string, Severity> change;
    if (!parse_severity_override(text, change)) {
      throw UsageError(fmt::format("`{}` must be RULES=LEVEL, such as CG027=warning", text));
    }
    if (change.second != Severity::error) refuse_always_reported(change.first);
    selection.severities.push_back(std::move(change));
  }
  for (const std::string& selector : selection.ignore) refuse_always_reported(selector);
  const std::vector<std::string> unknown = unknown_selectors(selection, known);
  if (!unknown.empty()) {
    std::vector<std::string> names;
    for (const KnownCode& code : known) {
      names.push_back(code.code);
      names.push_back(code.name);
      if (!code.family.empty()) names.push_back(code.family);
    }
    const std::string near = nearest(unknown.front(), names);
    throw UsageError(fmt::format("no rule matches `{}`{}", unknown.front(),
                                 near.empty() ? "" : "; did you mean `" + near + "`?"));
  }
  return selection;
}

}  // namespace capstan
