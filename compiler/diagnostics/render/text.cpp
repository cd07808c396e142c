// For people at a terminal: each finding with its source lines, notes and fixes, then one closing line.
#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/diagnostics/render/source_frame.h"

namespace capstan {
namespace {

constexpr std::size_t kMaxPreviewLines = 12;

struct Palette {
  std::string bold, reset, error, warning, hint, gutter, secondary;
  const std::string& of(Severity severity) const {
    return severity == Severity::error ? error : severity == Severity::warning ? warning : hint;
  }
};

Palette palette(bool color) {
  if (!color) return {};
  return {"\x1b[1m", "\x1b[0m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;36m", "\x1b[1;34m", "\x1b[34m"};
}

const char* note_word(Note::Kind kind) {
  switch (kind) {
    case Note::Kind::why:
      return "why";
    case Note::Kind::help:
      return "help";
    case Note::Kind::evidence:
      return "evidence";
    case Note::Kind::assumption:
      return "assumes";
    case Note::Kind::chain:
      return "because";
    case Note::Kind::source:
      return "source";
    case Note::Kind::symptom:
      return "symptom";
  }
  return "note";
}

std::string plural(std::size_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

/// `= word: text`, further lines indented below the text.
std::string note_line(const std::string& pad, const std::string& word, const std::string& text,
                      const Palette& colors) {
  std::string out =
      pad + " " + colors.gutter + "=" + colors.reset + " " + colors.bold + word + ":" + colors.reset + " ";
  const std::string indent(pad.size() + 5 + word.size(), ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  while (out.ends_with(' ') || out.ends_with('\n')) out.pop_back();
  return out + "\n";
}

std::string fix_words(const Fix& fix) {
  std::string words = applicability_name(fix.applicability);
  words += fix.cost == CostClass::free ? ", free" : fmt::format(", costs {}", cost_class_name(fix.cost));
  if (fix.verified) words += ", verified";
  return words;
}

void render_one(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options,
                const Palette& colors, std::string& out) {
  out += colors.of(diagnostic.severity) + severity_name(diagnostic.severity) + "[" + diagnostic.code + "]" +
         colors.reset + " " + colors.bold + safe_text(diagnostic.message) + colors.reset;
  if (!diagnostic.name.empty()) out += " (" + diagnostic.name + ")";
  out += "\n";

  std::vector<Label> labels;
  std::size_t hidden = 0;
  for (const bool primary : {true, false}) {
    for (const Label& label : diagnostic.labels) {
      if (!label.span.exists() || label.primary != primary) continue;
      if (labels.size() < std::max<std::size_t>(options.max_labels, 1))
        labels.push_back(label);
      else
        ++hidden;
    }
  }
  const std::uint32_t gutter = gutter_width(labels, sources);
  const FramePaint paint{colors.of(diagnostic.severity), colors.secondary, colors.gutter, colors.reset};
  const std::string pad(gutter, ' ');
  if (!labels.empty()) {
    out += source_frame(labels, sources, gutter, paint);
    if (!diagnostic.notes.empty() || !diagnostic.fixes.empty() || hidden > 0 ||
        !options.documentation_url.empty()) {
      out += pad + " " + colors.gutter + "|" + colors.reset + "\n";
    }
  }
  if (hidden > 0) out += note_line(pad, "places", fmt::format("{} more not shown", hidden), colors);
  for (const Note& note : diagnostic.notes) {
    std::string text = safe_text(note.text, true);
    if (!note.url.empty()) text += (text.empty() ? "" : " ") + ("<" + safe_text(note.url) + ">");
    out += note_line(pad, note_word(note.kind), text, colors);
  }
  for (const Fix& fix : diagnostic.fixes) {
    out += note_line(pad, "fix", fmt::format("{} [{}]", safe_text(fix.title), fix_words(fix)), colors);
    out += edit_preview(fix.edits, sources, gutter, kMaxPreviewLines, paint);
  }
  if (const std::string page = documentation_page(options.documentation_url, diagnostic.code);
      !page.empty()) {
    out += note_line(pad, "more", page, colors);
  }
  out += "\n";
}

}  // namespace

std::string render_text(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                        const RunSummary& summary, const RenderOptions& options) {
  const Palette colors = palette(options.color);
  std::string out;
  std::size_t fixable = 0;
  for (const Diagnostic& diagnostic : diagnostics) {
    render_one(diagnostic, sources, options, colors, out);
    for (const Fix& fix : diagnostic.fixes) {
      if (!fix.verified || fix.applicability == Applicability::display_only) continue;
      ++fixable;
      break;
    }
  }
  const SeverityCounts counts = count_severities(diagnostics);
  std::vector<std::string> found;
  if (counts.errors > 0) found.push_back(plural(counts.errors, "error"));
  if (counts.warnings > 0) found.push_back(plural(counts.warnings, "warning"));
  if (counts.hints > 0) found.push_back(plural(counts.hints, "hint"));
  std::string line = "no findings";
  if (!found.empty()) {
    line = "found " + found[0];
    for (std::size_t i = 1; i < found.size(); ++i)
      line += (i + 1 == found.size() ? " and " : ", ") + found[i];
  }
  if (summary.files > 0) line += " in " + plural(summary.files, "file");
  if (fixable > 0) line += fmt::format("; {} with a verified fix", fixable);
  if (summary.suppressed > 0) line += fmt::format("; {} suppressed", summary.suppressed);
  if (summary.baselined > 0) line += fmt::format("; {} in the baseline", summary.baselined);
  if (summary.undecided > 0) line += fmt::format("; {} undecided", summary.undecided);
  for (std::size_t i = 0; i < summary.undecided_facts.size(); ++i)
    line += fmt::format("{}`{}`", i == 0 ? " without " : ", ", safe_text(summary.undecided_facts[i]));
  if (!summary.stack.empty()) line += "; stack " + safe_text(summary.stack);
  return out + colors.bold + line + colors.reset + "\n";
}

}  // namespace capstan
