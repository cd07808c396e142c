// The project file's part in the options of a command: the command line wins, lists are joined.
#pragma once

#include <optional>
#include <string>

#include "compiler/diagnostics/sink.h"
#include "compiler/driver/config_options.h"
#include "compiler/driver/project_file.h"
#include "compiler/driver/selection_options.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// The nearest project file of a checked file ("-" is standard input); empty if there is none.
std::string project_of_file(const std::string& file);

/// Reads the project file; nothing, with reports in `sink`, when it is not well-formed. UsageError when it
/// cannot be opened.
std::optional<ProjectFile> open_project(const std::string& path, SourceMap& sources, Sink& sink);

void add_project(const ProjectFile& project, ConfigOptions& config, SelectionOptions& selection);

/// The project file that belongs to one config file. UsageError when it cannot be used, its problems on
/// standard error.
std::optional<ProjectFile> project_for(const std::string& file);
/// The options with what that project file says.
ConfigOptions with_project(ConfigOptions options, const std::string& file);

}  // namespace capstan
