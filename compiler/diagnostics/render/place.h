// Where a diagnostic is shown, the same for every renderer.
#pragma once

#include <string>
#include <string_view>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// The first primary label with a place, else the first label with a place, else null.
const Label* shown_label(const Diagnostic& diagnostic);
/// "name:line:column" of the span's beginning; empty for a span that does not exist.
std::string place_text(const SourceMap& sources, Span span);
/// True for texts that have a path (files, and standard input under its given name).
bool has_path(const SourceFile& file);
/// Page of a code: prefix + code, or empty without a prefix.
std::string documentation_page(const std::string& prefix, const std::string& code);
/// "graph-moe-and-router" -> "GraphMoeAndRouter".
std::string camel_case(std::string_view kebab);
/// Text with everything outside `A-Za-z0-9-._~/` percent-encoded.
std::string percent_encoded(std::string_view path);

struct SeverityCounts {
  std::size_t errors = 0, warnings = 0, hints = 0;
};
SeverityCounts count_severities(const std::vector<Diagnostic>& diagnostics);

}  // namespace capstan
