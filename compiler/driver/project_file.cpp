#include "compiler/driver/project_file.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "compiler/diagnostics/selection.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/schema/schema.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

constexpr const char* kCode = "TL001";

class ProjectReader {
 public:
  ProjectReader(std::string folder, Sink& sink) : folder_(std::move(folder)), sink_(sink) {}

  void text(const SyntaxEntry& entry, std::string& into) {
    if (is_text(entry.value))
      into = entry.value.scalar.string();
    else
      wrong(entry, "a string");
  }
  void stack(const SyntaxEntry& entry, std::string& into) {
    text(entry, into);
    if (is_text(entry.value) && builtin_schema().find_stack(into) == nullptr)
      report_unknown_stack(into, builtin_schema(), entry.value.span, sink_);
  }
  void texts(const SyntaxEntry& entry, std::vector<std::string>& into) {
    if (entry.value.kind != SyntaxNode::Kind::list) return wrong(entry, "a list of strings");
    for (const SyntaxNode& item : entry.value.items) {
      if (!is_text(item)) return wrong(entry, "a list of strings");
      into.push_back(item.scalar.string());
    }
  }
  void path(const SyntaxEntry& entry, std::string& into) {
    text(entry, into);
    into = beside(into);
  }
  void paths(const SyntaxEntry& entry, std::vector<std::string>& into) {
    texts(entry, into);
    for (std::string& path : into) path = beside(path);
  }
  void severities(const SyntaxEntry& entry, std::vector<std::string>& into) {
    if (entry.value.kind != SyntaxNode::Kind::table)
      return wrong(entry, "a table such as { CG027 = \"warning\" }");
    for (const SyntaxEntry& rule : entry.value.entries) {
      Severity severity;
      if (!is_text(rule.value) || !parse_severity(rule.value.scalar.string(), severity)) {
        wrong(rule, "\"error\", \"warning\" or \"hint\"");
      } else {
        into.push_back(rule.key + '=' + rule.value.scalar.string());
      }
    }
  }
  void level(const SyntaxEntry& entry, std::string& into) {
    Severity severity;
    text(entry, into);
    if (is_text(entry.value) && !parse_severity(into, severity))
      wrong(entry, "\"error\", \"warning\" or \"hint\"");
  }
  void unknown(const SyntaxEntry& entry) {
    const std::string near = nearest(entry.key, {"target", "select", "ignore", "fail_level", "rules",
                                                 "env_files", "baseline", "severity"});
    sink_.problem(kCode,
                  fmt::format("capstan.toml has no key `{}`{}", entry.key,
                              near.empty() ? "" : fmt::format("; did you mean `{}`?", near)),
                  entry.key_span);
  }

 private:
  static bool is_text(const SyntaxNode& node) {
    return node.kind == SyntaxNode::Kind::scalar && node.scalar.kind() == Value::Kind::string;
  }
  void wrong(const SyntaxEntry& entry, const char* wanted) {
    sink_.problem(kCode, fmt::format("`{}` must be {}", entry.key, wanted), entry.value.span);
  }
  std::string beside(const std::string& path) const {
    if (path.empty() || path.starts_with('/') || folder_.empty()) return path;
    return folder_ + '/' + path;
  }

  std::string folder_;
  Sink& sink_;
};

}  // namespace

std::string find_project_file(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path at = fs::absolute(folder.empty() ? "." : folder, error).lexically_normal();
  while (!error) {
    // A link that leads nowhere, a folder, a pipe: whoever put it there meant a project file, and is told.
    if (fs::exists(fs::symlink_status(at / "capstan.toml", error))) {
      const fs::path here = fs::current_path(error);
      const fs::path relative = (at / "capstan.toml").lexically_proximate(here);
      return relative.string();
    }
    error.clear();
    const fs::path parent = at.parent_path();
    if (parent == at) break;
    at = parent;
  }
  return {};
}

std::optional<ProjectFile> read_project_file(SourceId source, const SourceMap& sources, Sink& sink) {
  const std::size_t before = sink.diagnostics().size();
  SyntaxProblem problem;
  const std::optional<SyntaxNode> tree = parse_toml(source, sources, problem);
  if (!tree) {
    sink.problem(kCode, problem.message, problem.where);
    return std::nullopt;
  }
  ProjectFile project;
  project.path = sources[source].name();
  const auto slash = project.path.rfind('/');
  ProjectReader reader(slash == std::string::npos ? "" : project.path.substr(0, slash), sink);
  for (const SyntaxEntry& entry : tree->entries) {
    if (entry.key == "target")
      reader.stack(entry, project.target);
    else if (entry.key == "select")
      reader.texts(entry, project.select);
    else if (entry.key == "ignore")
      reader.texts(entry, project.ignore);
    else if (entry.key == "fail_level")
      reader.level(entry, project.fail_level);
    else if (entry.key == "rules")
      reader.paths(entry, project.rules);
    else if (entry.key == "env_files")
      reader.paths(entry, project.env_files);
    else if (entry.key == "baseline")
      reader.path(entry, project.baseline);
    else if (entry.key == "severity")
      reader.severities(entry, project.severity);
    else
      reader.unknown(entry);
  }
  if (sink.diagnostics().size() != before) return std::nullopt;
  return project;
}

}  // namespace capstan
