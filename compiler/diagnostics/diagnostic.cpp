#include "compiler/diagnostics/diagnostic.h"

#include <cstdint>
#include <string_view>

#include <fmt/format.h>

#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

// FNV-1a, 64 bit: stable across builds and platforms, which std::hash is not.
void mix(std::uint64_t& hash, std::string_view text) {
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ull;
  }
  hash ^= 0xff;  // separator: no byte of UTF-8 text
  hash *= 0x100000001b3ull;
}

}  // namespace

std::string fingerprint(const Diagnostic& diagnostic) {
  std::uint64_t hash = 0xcbf29ce484222325ull;
  mix(hash, diagnostic.code);
  for (const std::string& key : diagnostic.keys) mix(hash, key);
  for (const auto& [name, value] : diagnostic.arguments) {
    mix(hash, name);
    mix(hash, to_text(value));
  }
  return fmt::format("{:016x}", hash);
}

const char* severity_name(Severity severity) {
  switch (severity) {
    case Severity::hint:
      return "hint";
    case Severity::warning:
      return "warning";
    case Severity::error:
      return "error";
  }
  return "?";
}

const char* finding_kind_name(FindingKind kind) {
  switch (kind) {
    case FindingKind::problem:
      return "problem";
    case FindingKind::rejects:
      return "rejects";
    case FindingKind::breaks:
      return "breaks";
    case FindingKind::advice:
      return "advice";
  }
  return "?";
}

const char* applicability_name(Applicability applicability) {
  switch (applicability) {
    case Applicability::safe:
      return "safe";
    case Applicability::unsafe:
      return "unsafe";
    case Applicability::display_only:
      return "display-only";
  }
  return "?";
}

const char* cost_class_name(CostClass cost) {
  switch (cost) {
    case CostClass::free:
      return "free";
    case CostClass::memory:
      return "memory";
    case CostClass::speed:
      return "speed";
    case CostClass::numerics:
      return "numerics";
  }
  return "?";
}

const std::vector<CodeInfo>& builtin_codes() {
  static const std::vector<CodeInfo> codes = {
#define CAPSTAN_CODE(code, severity, name, title) {#code, Severity::severity, #name, title},
#include "compiler/diagnostics/codes.def"
#undef CAPSTAN_CODE
  };
  return codes;
}

const CodeInfo* find_code(std::string_view code) {
  for (const CodeInfo& info : builtin_codes()) {
    if (info.code == code) return &info;
  }
  return nullptr;
}

Diagnostic start_problem(std::string_view code, std::string message, Span place, std::string label) {
  const CodeInfo* info = find_code(code);
  if (info == nullptr) throw std::logic_error("no such diagnostic code: " + std::string(code));
  Diagnostic diagnostic;
  diagnostic.code = info->code;
  diagnostic.name = info->name;
  diagnostic.severity = info->severity;
  diagnostic.message = std::move(message);
  if (place.exists()) diagnostic.labels.push_back({place, std::move(label), true});
  return diagnostic;
}

}  // namespace capstan
