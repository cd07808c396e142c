// One function per output format; each takes finished, sorted diagnostics and gives the whole text. No
// renderer reads files.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct RenderOptions {
  bool color = false;                     ///< ANSI colours (text only)
  std::size_t max_labels = 8;             ///< text: further labels are counted, not shown
  std::string documentation_url;          ///< prefix for rule pages; may be empty
  std::string version;                    ///< of Capstan, for SARIF; may be empty
  Severity fail_level = Severity::error;  ///< JUnit: findings at or above it are failures
};

/// Counts of one invocation, for the closing line and for JSON.
struct RunSummary {
  std::size_t files = 0;
  std::size_t suppressed = 0, baselined = 0, undecided = 0;
  std::string stack;                              ///< "bridge-0.4 (assumed: ...)"; empty when files differ
  std::vector<std::string> undecided_facts = {};  ///< facts about the target that nobody stated, sorted
};

std::string render_text(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                        const RenderOptions&);
std::string render_concise(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                           const RenderOptions&);
/// docs/diagnostics.schema.json describes it; "version": 1.
std::string render_json(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                        const RenderOptions&);
std::string render_sarif(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                         const RenderOptions&);
std::string render_github(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                          const RenderOptions&);
std::string render_gitlab(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                          const RenderOptions&);
std::string render_junit(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                         const RenderOptions&);

}  // namespace capstan
