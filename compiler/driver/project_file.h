// capstan.toml: what a project wants of every check. Found upward from the checked file. Checked itself:
// unknown keys and wrong types are reported with their place. Paths in it are relative to its folder.
//
//   target = "bridge-0.4"
//   select = ["CG", "EN"]
//   ignore = ["CG012"]
//   fail_level = "warning"
//   rules = ["our_rules"]
//   env_files = ["job.env"]
//   baseline = "capstan-baseline.json"
//   [severity]
//   EN003 = "error"
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct ProjectFile {
  std::string path;
  std::string target, fail_level, baseline;
  std::vector<std::string> select, ignore, rules, env_files;
  std::vector<std::string> severity;  ///< "CODE=level"
};

/// Path of the nearest capstan.toml in `folder` or above; empty if there is none.
std::string find_project_file(const std::string& folder);

/// Nothing, with reports (TL001, TG001 for an unknown target), when the file is not well-formed.
std::optional<ProjectFile> read_project_file(SourceId source, const SourceMap& sources, Sink& sink);

}  // namespace capstan
