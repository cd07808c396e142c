// One config file read through all stages but the rules, for the commands that show or convert it. Findings
// go to stderr.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "compiler/driver/workspace.h"

namespace capstan {

struct ResolvedFile {
  std::unique_ptr<Workspace> workspace;    ///< owns the texts and what the stack knows
  std::optional<PreparedConfig> prepared;  ///< nothing when the file cannot be read
  bool has_errors = false;
};

/// Prints the problems of reading; hints and warnings only when `verbose`.
ResolvedFile resolve_file(const std::string& path, const ConfigOptions& options, bool verbose);

}  // namespace capstan
