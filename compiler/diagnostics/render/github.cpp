// Workflow commands of GitHub Actions (`::error file=...::message`), which show as annotations at the line.
#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

/// GitHub's escaping: `%`, CR and LF everywhere, `:` and `,` in properties too.
std::string escaped(std::string_view text, bool property) {
  std::string out;
  for (const char c : safe_text(text, true)) {
    if (c == '%')
      out += "%25";
    else if (c == '\r')
      out += "%0D";
    else if (c == '\n')
      out += "%0A";
    else if (property && c == ':')
      out += "%3A";
    else if (property && c == ',')
      out += "%2C";
    else
      out += c;
  }
  return out;
}

const char* command(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::hint:
      return "notice";
  }
  return "notice";
}

}  // namespace

std::string render_github(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                          const RunSummary&, const RenderOptions&) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    out += fmt::format("::{} ", command(diagnostic.severity));
    if (const Label* label = shown_label(diagnostic);
        label != nullptr && has_path(sources[label->span.source])) {
      const SourceFile& file = sources[label->span.source];
      const LineColumn begin = file.locate(label->span.begin);
      const LineColumn end = file.locate(label->span.end);
      out += fmt::format("file={},line={},", escaped(file.name(), true), begin.line);
      // GitHub takes columns only for ranges within one line.
      if (begin.line == end.line)
        out += fmt::format("endLine={},col={},endColumn={},", end.line, begin.column, end.column);
      else
        out += fmt::format("endLine={},", end.line);
    }
    out += "title=" + escaped(diagnostic.code + " " + diagnostic.name, true) + "::";
    std::string text = diagnostic.message;
    for (const Note& note : diagnostic.notes) {
      if (note.kind == Note::Kind::why) text += "\n" + note.text;
    }
    for (const Fix& fix : diagnostic.fixes)
      text += fmt::format("\nfix ({}): {}", applicability_name(fix.applicability), fix.title);
    out += escaped(text, false) + "\n";
  }
  return out;
}

}  // namespace capstan
