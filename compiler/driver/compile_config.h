// A config file -> findings and, when nothing at or above the fail level stands against it, a plan. What
// `compile` and `run` share: the same findings as lint, with the same project file and suppressions.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/driver/config_options.h"
#include "compiler/driver/workspace.h"
#include "compiler/plan/plan.h"

namespace capstan {

struct CompiledConfig {
  std::unique_ptr<Workspace> workspace;  ///< owns the texts that the findings point into
  std::vector<Diagnostic> findings;      ///< sorted for output
  std::optional<plan::Plan> plan;        ///< nothing when a finding is an error
  std::string stack;                     ///< "bridge-0.4 (assumed: ...)"
  std::size_t suppressed = 0;
  std::vector<std::string> further_inputs;  ///< see Workspace
};

/// `file` may be "-" for standard input. `last_pass`: see plan::compile.
CompiledConfig compile_config(const std::string& file, const ConfigOptions& options,
                              const std::string& last_pass = {});

/// Writes the findings to standard error; gives kExitFindings when there is no plan, else kExitClean.
int report_compilation(const CompiledConfig& compiled);

/// What was compiled, in a few lines: ops, segments, captured parts, planned memory.
std::string summarize_plan(const plan::Plan& plan, const std::string& file, const std::string& stack);

}  // namespace capstan
