// Version 1 of the JSON output; docs/diagnostics.schema.json describes it. Places come as bytes (0-based),
// line and column (1-based, code points) and UTF-16 column (0-based), so that no reader needs to convert.
#include <nlohmann/json.hpp>

#include <cmath>

#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return nullptr;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer();
    case Value::Kind::floating:
      if (!std::isfinite(value.floating())) return to_text(value);  // JSON has no inf and nan
      return value.floating();
    case Value::Kind::string:
      return value.string();
    case Value::Kind::list: {
      Json list = Json::array();
      for (const Value& item : value.list()) list.push_back(to_json(item));
      return list;
    }
    case Value::Kind::table: {
      Json table = Json::object();
      for (const auto& [key, item] : value.table()) table[key] = to_json(item);
      return table;
    }
  }
  return nullptr;
}

Json position(const SourceFile& file, std::uint32_t offset) {
  const LineColumn place = file.locate(offset);
  const LineColumn utf16 = file.locate_utf16(offset);
  return {{"byte", offset}, {"line", place.line}, {"column", place.column}, {"utf16_column", utf16.column}};
}

const char* source_kind_name(SourceKind kind) {
  switch (kind) {
    case SourceKind::file:
      return "file";
    case SourceKind::standard_input:
      return "standard-input";
    case SourceKind::override_argument:
      return "override";
    case SourceKind::environment:
      return "environment";
    case SourceKind::builtin:
      return "builtin";
  }
  return "file";
}

Json place(Span span, const SourceMap& sources) {
  if (!span.exists()) return nullptr;
  const SourceFile& file = sources[span.source];
  return {{"source", file.name()},
          {"source_kind", source_kind_name(file.kind())},
          {"start", position(file, span.begin)},
          {"end", position(file, span.end)}};
}

const char* note_kind_name(Note::Kind kind) {
  switch (kind) {
    case Note::Kind::why:
      return "why";
    case Note::Kind::help:
      return "help";
    case Note::Kind::evidence:
      return "evidence";
    case Note::Kind::assumption:
      return "assumption";
    case Note::Kind::chain:
      return "chain";
    case Note::Kind::source:
      return "source";
    case Note::Kind::symptom:
      return "symptom";
  }
  return "help";
}

Json to_json(const Diagnostic& diagnostic, const SourceMap& sources, const RenderOptions& options) {
  Json out = {
      {"code", diagnostic.code},
      {"name", diagnostic.name},
      {"severity", severity_name(diagnostic.severity)},
      {"kind", finding_kind_name(diagnostic.kind)},
      {"message", diagnostic.message},
      {"fingerprint", diagnostic.fingerprint.empty() ? fingerprint(diagnostic) : diagnostic.fingerprint}};
  const std::string page = documentation_page(options.documentation_url, diagnostic.code);
  out["url"] = page.empty() ? Json(nullptr) : Json(page);
  out["keys"] = diagnostic.keys;
  Json arguments = Json::object();
  for (const auto& [name, value] : diagnostic.arguments) arguments[name] = to_json(value);
  out["arguments"] = std::move(arguments);
  const Label* shown = shown_label(diagnostic);
  out["place"] = shown == nullptr ? Json(nullptr) : place(shown->span, sources);
  Json labels = Json::array();
  for (const Label& label : diagnostic.labels) {
    labels.push_back(
        {{"primary", label.primary}, {"text", label.text}, {"place", place(label.span, sources)}});
  }
  out["labels"] = std::move(labels);
  Json notes = Json::array();
  for (const Note& note : diagnostic.notes) {
    notes.push_back({{"kind", note_kind_name(note.kind)},
                     {"text", note.text},
                     {"url", note.url.empty() ? Json(nullptr) : Json(note.url)}});
  }
  out["notes"] = std::move(notes);
  Json fixes = Json::array();
  for (const Fix& fix : diagnostic.fixes) {
    Json edits = Json::array();
    for (const Edit& edit : fix.edits) {
      edits.push_back({{"place", place(edit.span, sources)}, {"replacement", edit.replacement}});
    }
    fixes.push_back({{"title", fix.title},
                     {"applicability", applicability_name(fix.applicability)},
                     {"cost", cost_class_name(fix.cost)},
                     {"verified", fix.verified},
                     {"edits", std::move(edits)}});
  }
  out["fixes"] = std::move(fixes);
  return out;
}

}  // namespace

std::string render_json(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                        const RunSummary& summary, const RenderOptions& options) {
  const SeverityCounts counts = count_severities(diagnostics);
  Json out = {{"version", 1},
              {"summary",
               {{"files", summary.files},
                {"errors", counts.errors},
                {"warnings", counts.warnings},
                {"hints", counts.hints},
                {"suppressed", summary.suppressed},
                {"baselined", summary.baselined},
                {"undecided", summary.undecided},
                {"undecided_facts", summary.undecided_facts},
                {"stack", summary.stack.empty() ? Json(nullptr) : Json(summary.stack)}}}};
  Json list = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) list.push_back(to_json(diagnostic, sources, options));
  out["diagnostics"] = std::move(list);
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan
