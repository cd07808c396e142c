// How findings leave the program: format, file, colour, fail level. Shared by every command that reports
// findings.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/command.h"

namespace capstan {

struct ReportOptions {
  std::string format = "text";              ///< text, concise, json, sarif, github, gitlab, junit
  std::string output;                       ///< file instead of standard output; empty: standard output
  std::string color = "auto";               ///< auto, always, never
  std::string fail_level;                   ///< empty: error
  bool exit_zero = false;                   ///< findings do not change the exit code
  std::vector<std::string> further_inputs;  ///< not an option: files that `output` may not replace
};

void add_report_options(CLI::App& command, ReportOptions& options);

/// Renders, writes, and gives the exit code: 1 for a finding at or above the fail level, else 0. Throws
/// UsageError when the output file cannot be written.
int report_findings(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                    const RunSummary& summary, const ReportOptions& options);

}  // namespace capstan
