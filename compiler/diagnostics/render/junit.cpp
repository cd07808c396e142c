// JUnit XML: one test suite a file, one test case a finding. Findings at or above the fail level are
// failures, others are passed cases with their text as output; a run without findings is one passed case.
#include <fmt/format.h>

#include <map>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : safe_text(text, true)) {  // XML 1.0 has no way to write control characters
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string render_junit(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                         const RunSummary&, const RenderOptions& options) {
  struct Suite {
    std::string cases;
    std::size_t tests = 0, failures = 0;
  };
  std::map<std::string, Suite> suites;
  std::size_t tests = 0, failures = 0;
  for (const Diagnostic& diagnostic : diagnostics) {
    const Label* label = shown_label(diagnostic);
    const std::string name = label == nullptr ? "capstan" : sources[label->span.source].name();
    std::string where;
    if (label != nullptr) {
      const LineColumn place = sources[label->span.source].locate(label->span.begin);
      where = fmt::format(":{}:{}", place.line, place.column);
    }
    Suite& suite = suites[name];
    suite.cases += fmt::format("    <testcase name=\"{} {}{}\" classname=\"{}\">\n", escaped(diagnostic.code),
                               escaped(diagnostic.name), where, escaped(name));
    std::string text = fmt::format("{}{}: {}", name, where, diagnostic.message);
    for (const Note& note : diagnostic.notes) text += "\n" + note.text;
    const bool failed = diagnostic.severity >= options.fail_level;
    if (failed) {
      suite.cases +=
          fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n",
                      severity_name(diagnostic.severity), escaped(diagnostic.message), escaped(text));
    } else {
      suite.cases += fmt::format("      <system-out>{}: {}</system-out>\n",
                                 severity_name(diagnostic.severity), escaped(text));
    }
    suite.cases += "    </testcase>\n";
    ++suite.tests, ++tests;
    suite.failures += failed, failures += failed;
  }
  if (suites.empty()) {
    suites["capstan"] = {"    <testcase name=\"no findings\" classname=\"capstan\"/>\n", 1, 0};
    tests = 1;
  }
  std::string out = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"capstan\" tests=\"{}\" "
      "failures=\"{}\">\n",
      tests, failures);
  for (const auto& [name, suite] : suites) {
    out +=
        fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n{}  </testsuite>\n",
                    escaped(name), suite.tests, suite.failures, suite.cases);
  }
  return out + "</testsuites>\n";
}

}  // namespace capstan
