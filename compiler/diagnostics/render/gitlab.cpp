// GitLab code quality report. Fingerprints hold no line numbers, so that moved findings stay the same
// finding; equal ones in one file get a counter, because GitLab drops repeated fingerprints.
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

const char* gitlab_severity(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "major";
    case Severity::warning:
      return "minor";
    case Severity::hint:
      return "info";
  }
  return "info";
}

}  // namespace

std::string render_gitlab(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                          const RunSummary&, const RenderOptions&) {
  Json out = Json::array();
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  for (const Diagnostic& diagnostic : diagnostics) {
    const Label* label = shown_label(diagnostic);
    const std::string path = label == nullptr ? "capstan" : sources[label->span.source].name();
    const std::uint32_t line =
        label == nullptr ? 1 : sources[label->span.source].locate(label->span.begin).line;
    const std::string print =
        diagnostic.fingerprint.empty() ? fingerprint(diagnostic) : diagnostic.fingerprint;
    const std::size_t earlier = seen[{path, print}]++;
    // The path is part of it: one finding in two files is two findings.
    out.push_back({{"description", diagnostic.message},
                   {"check_name", diagnostic.code},
                   {"fingerprint", fmt::format("{}:{}{}", print, percent_encoded(path),
                                               earlier == 0 ? "" : fmt::format(":{}", earlier + 1))},
                   {"severity", gitlab_severity(diagnostic.severity)},
                   {"location", {{"path", path}, {"lines", {{"begin", line}}}}}});
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan
