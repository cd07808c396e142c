#include "compiler/diagnostics/render/place.h"

#include <fmt/format.h>

namespace capstan {

const Label* shown_label(const Diagnostic& diagnostic) {
  for (const Label& label : diagnostic.labels) {
    if (label.primary && label.span.exists()) return &label;
  }
  for (const Label& label : diagnostic.labels) {
    if (label.span.exists()) return &label;
  }
  return nullptr;
}

std::string place_text(const SourceMap& sources, Span span) {
  if (!span.exists()) return {};
  const SourceFile& file = sources[span.source];
  const LineColumn at = file.locate(span.begin);
  return fmt::format("{}:{}:{}", file.name(), at.line, at.column);
}

bool has_path(const SourceFile& file) {
  return file.kind() == SourceKind::file || file.kind() == SourceKind::standard_input;
}

std::string documentation_page(const std::string& prefix, const std::string& code) {
  return prefix.empty() ? std::string() : prefix + code;
}

std::string camel_case(std::string_view kebab) {
  std::string out;
  bool upper = true;
  for (const char c : kebab) {
    if (c == '-') {
      upper = true;
      continue;
    }
    out += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c;
    upper = false;
  }
  return out;
}

std::string percent_encoded(std::string_view path) {
  std::string out;
  for (const char c : path) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '.' || c == '_' || c == '~' || c == '/';
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

SeverityCounts count_severities(const std::vector<Diagnostic>& diagnostics) {
  SeverityCounts counts;
  for (const Diagnostic& diagnostic : diagnostics) {
    switch (diagnostic.severity) {
      case Severity::error:
        ++counts.errors;
        break;
      case Severity::warning:
        ++counts.warnings;
        break;
      case Severity::hint:
        ++counts.hints;
        break;
    }
  }
  return counts;
}

}  // namespace capstan
