#include "compiler/driver/resolved_file.h"

#include <cstdio>
#include <utility>

#include "compiler/diagnostics/finding_bound.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/project_options.h"

namespace capstan {

ResolvedFile resolve_file(const std::string& path, const ConfigOptions& options, bool verbose) {
  ResolvedFile file;
  Sink sink;
  file.workspace = std::make_unique<Workspace>(with_project(options, path), sink);
  file.workspace->require_usable(sink);
  if (const auto source = file.workspace->read_source(path, "<stdin>", sink)) {
    file.prepared = file.workspace->prepare(*source, sink);
  }
  file.has_errors = sink.has_errors();
  std::vector<Diagnostic> shown;
  for (const Diagnostic& diagnostic : sink.diagnostics()) {
    if (verbose || diagnostic.severity == Severity::error) shown.push_back(diagnostic);
  }
  bound_findings(shown);
  sort_for_output(shown);
  if (!shown.empty()) {
    RunSummary summary;
    summary.files = 1;
    std::fputs(render_text(shown, file.workspace->sources(), summary, {}).c_str(), stderr);
  }
  return file;
}

}  // namespace capstan
