// Which findings count, and how much: `--select`, `--ignore`, `--severity`. A selector is a code ("CG004"), a
// code's prefix
// ("CG", "CG0"), or a finding's name ("graph-modules-moe-and-router"). Problems of Capstan itself (a file
// that cannot be read, a syntax error, a wrong type) are never filtered: a config that was not read was not
// checked.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/driver/command.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

struct RuleSelection {
  std::vector<std::string> select;  ///< empty: all
  std::vector<std::string> ignore;
  std::vector<std::string> severity;  ///< "CODE=level"; the longest matching selector wins
};

void add_selection_options(CLI::App& command, RuleSelection& selection);

/// UsageError when a selector matches no rule and no built-in code, or a severity cannot be read.
void verify_selection(const RuleSelection& selection, const RuleSet& rules);

/// Removes what is not selected and changes severities.
void apply_selection(const RuleSelection& selection, std::vector<Diagnostic>& diagnostics);

}  // namespace capstan
