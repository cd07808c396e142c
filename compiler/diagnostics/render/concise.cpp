// One line a finding, `file:line:column: CODE severity message`, for editors' problem matchers and for grep.
#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {

std::string render_concise(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                           const RunSummary&, const RenderOptions&) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (const Label* label = shown_label(diagnostic)) {
      const SourceFile& file = sources[label->span.source];
      const LineColumn place = file.locate(label->span.begin);
      out += fmt::format("{}:{}:{}: ", safe_text(file.name()), place.line, place.column);
    } else {
      out += "capstan: ";
    }
    out += fmt::format("{} {} {}\n", diagnostic.code, severity_name(diagnostic.severity),
                       safe_text(diagnostic.message));
  }
  return out;
}

}  // namespace capstan
