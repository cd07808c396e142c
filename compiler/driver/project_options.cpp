#include "compiler/driver/project_options.h"

#include <cstdio>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/usage_error.h"

namespace capstan {

std::string project_of_file(const std::string& file) {
  return find_project_file(file == "-" ? std::string() : std::filesystem::path(file).parent_path().string());
}

std::optional<ProjectFile> open_project(const std::string& path, SourceMap& sources, Sink& sink) {
  ReadFailure failure;
  std::optional<std::string> text = read_text_file(path, failure);
  if (!text) throw UsageError(fmt::format("cannot read `{}`: {}", path, failure.reason));
  return read_project_file(sources.add(path, std::move(*text), SourceKind::file), sources, sink);
}

void add_project(const ProjectFile& project, ConfigOptions& config, SelectionOptions& selection) {
  if (config.target.empty()) config.target = project.target;
  if (selection.select.empty()) selection.select = project.select;
  const auto join = [](const std::vector<std::string>& first, std::vector<std::string>& then) {
    then.insert(then.begin(), first.begin(), first.end());
  };
  join(project.ignore, selection.ignore);
  join(project.severity, selection.severity);
  join(project.rules, config.rule_folders);
  join(project.env_files, config.env_files);
  config.project_inputs.push_back(project.path);
}

std::optional<ProjectFile> project_for(const std::string& file) {
  const std::string path = project_of_file(file);
  if (path.empty()) return std::nullopt;
  SourceMap sources;
  Sink sink;
  std::optional<ProjectFile> project = open_project(path, sources, sink);
  if (!project) {
    std::fputs(render_text(sink.diagnostics(), sources, {}, {}).c_str(), stderr);
    throw UsageError(fmt::format("the project file `{}` cannot be used", path));
  }
  return project;
}

ConfigOptions with_project(ConfigOptions options, const std::string& file) {
  SelectionOptions unused;
  if (const auto project = project_for(file)) {
    add_project(*project, options, unused);
    if (!project->baseline.empty()) options.project_inputs.push_back(project->baseline);
  }
  return options;
}

}  // namespace capstan
