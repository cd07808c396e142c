// SARIF 2.1.0 (OASIS), as GitHub code scanning and other services read it. Findings that stand in no file
// (command line, environment) name their key as logical location.
#include <nlohmann/json.hpp>

#include <map>

#include "compiler/diagnostics/render/place.h"
#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

const char* level(Severity severity) {
  switch (severity) {
    case Severity::error:
      return "error";
    case Severity::warning:
      return "warning";
    case Severity::hint:
      return "note";
  }
  return "none";
}

Json region(Span span, const SourceFile& file) {
  const LineColumn begin = file.locate(span.begin);
  const LineColumn end = file.locate(span.end);
  return {{"startLine", begin.line}, {"startColumn", begin.column}, {"endLine", end.line},
          {"endColumn", end.column}, {"byteOffset", span.begin},    {"byteLength", span.end - span.begin}};
}

Json artifact(const SourceFile& file) {
  return {{"uri", percent_encoded(file.name())}};
}

Json physical(Span span, const SourceFile& file) {
  return {{"artifactLocation", artifact(file)}, {"region", region(span, file)}};
}

Json result_of(const Diagnostic& diagnostic, std::size_t rule_index, const SourceMap& sources) {
  std::string text = diagnostic.message;
  for (const Note& note : diagnostic.notes) {
    if (note.kind == Note::Kind::why) text += "\n" + note.text;
  }
  Json result = {{"ruleId", diagnostic.code},
                 {"ruleIndex", rule_index},
                 {"level", level(diagnostic.severity)},
                 {"message", {{"text", text}}}};
  Json location = Json::object();
  const Label* shown = shown_label(diagnostic);
  if (shown != nullptr && has_path(sources[shown->span.source])) {
    location["physicalLocation"] = physical(shown->span, sources[shown->span.source]);
  }
  if (!diagnostic.keys.empty()) {
    location["logicalLocations"] =
        Json::array({{{"fullyQualifiedName", diagnostic.keys.front()}, {"kind", "member"}}});
  }
  if (!location.empty()) result["locations"] = Json::array({location});
  Json related = Json::array();
  for (const Label& label : diagnostic.labels) {
    if (&label == shown || !label.span.exists() || !has_path(sources[label.span.source])) continue;
    Json entry = {{"id", related.size()},
                  {"physicalLocation", physical(label.span, sources[label.span.source])}};
    if (!label.text.empty()) entry["message"] = {{"text", label.text}};
    related.push_back(std::move(entry));
  }
  if (!related.empty()) result["relatedLocations"] = std::move(related);
  result["partialFingerprints"] = {
      {"capstan/v1", diagnostic.fingerprint.empty() ? fingerprint(diagnostic) : diagnostic.fingerprint}};
  Json fixes = Json::array();
  for (const Fix& fix : diagnostic.fixes) {
    std::map<SourceId, Json> by_source;
    bool in_files = !fix.edits.empty();
    for (const Edit& edit : fix.edits) {
      if (!edit.span.exists() || !has_path(sources[edit.span.source])) {
        in_files = false;
        break;
      }
      Json replacement = {{"deletedRegion", region(edit.span, sources[edit.span.source])}};
      if (!edit.replacement.empty()) replacement["insertedContent"] = {{"text", edit.replacement}};
      auto [found, fresh] = by_source.try_emplace(edit.span.source, Json::array());
      found->second.push_back(std::move(replacement));
    }
    if (!in_files) continue;  // SARIF fixes must change an artifact
    Json changes = Json::array();
    for (auto& [source, replacements] : by_source) {
      changes.push_back(
          {{"artifactLocation", artifact(sources[source])}, {"replacements", std::move(replacements)}});
    }
    fixes.push_back({{"description", {{"text", fix.title}}}, {"artifactChanges", std::move(changes)}});
  }
  if (!fixes.empty()) result["fixes"] = std::move(fixes);
  result["properties"] = {{"kind", finding_kind_name(diagnostic.kind)}};
  return result;
}

}  // namespace

std::string render_sarif(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                         const RunSummary&, const RenderOptions& options) {
  std::map<std::string, std::size_t> index;
  Json rules = Json::array();
  Json results = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    const auto [found, fresh] = index.try_emplace(diagnostic.code, rules.size());
    if (fresh) {
      Json rule = {{"id", diagnostic.code}};
      if (!diagnostic.name.empty()) rule["name"] = camel_case(diagnostic.name);
      rule["shortDescription"] = {{"text", diagnostic.name.empty() ? diagnostic.code : diagnostic.name}};
      if (const std::string page = documentation_page(options.documentation_url, diagnostic.code);
          !page.empty()) {
        rule["helpUri"] = page;
      }
      rules.push_back(std::move(rule));
    }
    results.push_back(result_of(diagnostic, found->second, sources));
  }
  Json driver = {{"name", "capstan"}};
  if (!options.version.empty()) driver["semanticVersion"] = options.version;
  driver["rules"] = std::move(rules);
  const Json out = {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                    {"version", "2.1.0"},
                    {"runs", Json::array({{{"tool", {{"driver", std::move(driver)}}},
                                           {"columnKind", "unicodeCodePoints"},
                                           {"results", std::move(results)}}})}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan
