#include "compiler/driver/suppressed_findings.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "compiler/diagnostics/suppress.h"
#include "grammar/toml/toml_comments.h"

namespace capstan {

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[16];
  return std::strftime(text, sizeof text, "%Y-%m-%d", &local) == 0 ? std::string() : std::string(text);
}

std::size_t suppress_findings(std::vector<Diagnostic>& findings, SourceId file,
                              const PreparedConfig& prepared, const SourceMap& sources,
                              const std::vector<KnownCode>& known, const std::string& today,
                              Sink* about_comments) {
  std::vector<Suppression> own, inherited;
  Sink unheard;
  for (const SourceId source : prepared.config.files) {
    const SourceKind kind = sources[source].kind();
    if (kind != SourceKind::file && kind != SourceKind::standard_input) continue;
    const bool checked = source == file;
    const bool is_toml = !checked || prepared.format == ConfigFormat::toml;
    std::vector<Suppression> read =
        read_suppressions(is_toml ? find_toml_comments(source, sources) : prepared.record.comments, sources,
                          known, today, checked && about_comments != nullptr ? *about_comments : unheard);
    std::vector<Suppression>& into = checked ? own : inherited;
    into.insert(into.end(), std::make_move_iterator(read.begin()), std::make_move_iterator(read.end()));
  }
  std::size_t suppressed = apply_suppressions(findings, own, sources);
  suppressed += apply_suppressions(findings, inherited, sources);
  if (about_comments != nullptr) report_unused(own, sources, *about_comments);
  return suppressed;
}

}  // namespace capstan
