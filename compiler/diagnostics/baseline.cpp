#include "compiler/diagnostics/baseline.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "compiler/diagnostics/render/place.h"

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;

std::pair<std::string, std::string> key_of(const Diagnostic& diagnostic, const SourceMap& sources) {
  const Label* label = shown_label(diagnostic);
  return {label == nullptr ? std::string() : sources[label->span.source].name(),
          diagnostic.fingerprint.empty() ? fingerprint(diagnostic) : diagnostic.fingerprint};
}

bool may_be_known(const Diagnostic& diagnostic) {
  return !diagnostic.code.starts_with("SY") && !diagnostic.code.starts_with("RU");
}

}  // namespace

std::optional<Baseline> read_baseline(SourceId source, const SourceMap& sources, Sink& sink) {
  const auto text = sources[source].bytes();
  const auto refuse = [&](std::string why, std::size_t at) -> std::optional<Baseline> {
    const auto begin = static_cast<std::uint32_t>(std::min(at, text.size()));
    const auto end = static_cast<std::uint32_t>(std::min<std::size_t>(begin + 1, text.size()));
    sink.problem("SU006", std::move(why), Span{source, begin, end});
    return std::nullopt;
  };
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {  // the JSON reader recurses when it frees deep values
    if (text[i] == '[' || text[i] == '{') ++depth;
    if (text[i] == ']' || text[i] == '}') --depth;
    if (depth > 16) return refuse("a baseline has no such deep nesting", i);
  }
  Json root;
  try {
    root = Json::parse(text);
  } catch (const Json::parse_error& error) {
    return refuse("the baseline is no valid JSON", error.byte == 0 ? 0 : error.byte - 1);
  }
  if (!root.is_object() || !root.contains("version") || !root.contains("findings") ||
      !root["findings"].is_array()) {
    return refuse("a baseline is an object with `version` and `findings`", 0);
  }
  if (root["version"] != kVersion) {
    return refuse(fmt::format("the baseline has version {}; this program reads version {}",
                              root["version"].dump(), kVersion),
                  0);
  }
  Baseline baseline;
  for (const Json& finding : root["findings"]) {
    const auto is_text = [&](const char* key) { return finding.contains(key) && finding[key].is_string(); };
    if (!finding.is_object() || !is_text("file") || !is_text("code") || !is_text("fingerprint") ||
        !finding.contains("count") || !finding["count"].is_number_unsigned()) {
      return refuse("a finding of the baseline lacks `file`, `code`, `fingerprint` or `count`", 0);
    }
    Baseline::Entry& entry =
        baseline.entries[{finding["file"].get<std::string>(), finding["fingerprint"].get<std::string>()}];
    entry.code = finding["code"].get<std::string>();
    entry.count += finding["count"].get<std::size_t>();
  }
  return baseline;
}

std::string print_baseline(const Baseline& baseline) {
  Json findings = Json::array();
  for (const auto& [key, entry] : baseline.entries) {
    findings.push_back(
        {{"file", key.first}, {"code", entry.code}, {"fingerprint", key.second}, {"count", entry.count}});
  }
  return Json{{"version", kVersion}, {"findings", std::move(findings)}}.dump(2, ' ', false,
                                                                             Json::error_handler_t::replace) +
         "\n";
}

Baseline make_baseline(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources) {
  Baseline baseline;
  for (const Diagnostic& diagnostic : diagnostics) {
    if (!may_be_known(diagnostic)) continue;
    Baseline::Entry& entry = baseline.entries[key_of(diagnostic, sources)];
    entry.code = diagnostic.code;
    ++entry.count;
  }
  return baseline;
}

std::size_t apply_baseline(std::vector<Diagnostic>& diagnostics, const Baseline& baseline,
                           const SourceMap& sources) {
  std::map<std::pair<std::string, std::string>, std::size_t> left;
  for (const auto& [key, entry] : baseline.entries) left[key] = entry.count;
  const std::size_t before = diagnostics.size();
  std::erase_if(diagnostics, [&](const Diagnostic& diagnostic) {
    if (!may_be_known(diagnostic)) return false;
    const auto found = left.find(key_of(diagnostic, sources));
    if (found == left.end() || found->second == 0) return false;
    --found->second;
    return true;
  });
  return before - diagnostics.size();
}

}  // namespace capstan
