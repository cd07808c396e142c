// The parts of `capstan rules`, each in its own file, and how they get at the rules.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/driver/command.h"
#include "compiler/ruleset/resolve.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// The built-in rules and those of the user's folders. Throws UsageError, after showing what is wrong on
/// standard error, when a folder holds a bad rule.
struct LoadedRules {
  SourceMap sources;
  RuleSet rules;
  explicit LoadedRules(const std::vector<std::string>& folders);
};

/// The folders given, behind those that the project file of the working folder names.
std::vector<std::string> with_project_rules(const std::vector<std::string>& folders);

void add_conformance_command(CLI::App& rules, int& exit_code);

}  // namespace capstan
