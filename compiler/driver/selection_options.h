// `--select`, `--ignore`, `--severity` as the command line and the project file give them -> Selection.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/selection.h"
#include "compiler/driver/command.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

struct SelectionOptions {
  std::vector<std::string> select, ignore;
  std::vector<std::string> severity;  ///< "CODE=level"
};

void add_selection_options(CLI::App& command, SelectionOptions& options);

/// Built-in codes and those of the rules.
std::vector<KnownCode> known_codes(const RuleSet& rules);

/// UsageError when a selector matches nothing or a severity cannot be read.
Selection make_selection(const SelectionOptions& options, const std::vector<KnownCode>& known);

}  // namespace capstan
