#include "compiler/diagnostics/sink.h"

#include <algorithm>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "compiler/diagnostics/codes.h"

namespace capstan {

void Sink::report(Diagnostic diagnostic) {
  if (diagnostic.fingerprint.empty()) diagnostic.fingerprint = fingerprint(diagnostic);
  diagnostics_.push_back(std::move(diagnostic));
}

void Sink::problem(const char* code, std::string message, Span where, std::string label) {
  const CodeInfo* info = find_code(code);
  if (info == nullptr) throw std::logic_error(std::string("no such diagnostic code: ") + code);
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.name = info->name;
  diagnostic.severity = info->severity;
  diagnostic.message = std::move(message);
  if (where.exists()) diagnostic.labels.push_back({where, std::move(label), true});
  report(std::move(diagnostic));
}

std::vector<Diagnostic> Sink::take() {
  return std::exchange(diagnostics_, {});
}

std::size_t Sink::count(Severity severity) const {
  return static_cast<std::size_t>(std::count_if(diagnostics_.begin(), diagnostics_.end(),
                                                [&](const Diagnostic& d) { return d.severity == severity; }));
}

void sort_for_output(std::vector<Diagnostic>& diagnostics) {
  const auto place = [](const Diagnostic& diagnostic) {
    for (const Label& label : diagnostic.labels) {
      if (label.primary) return std::tuple(label.span.source, label.span.begin);
    }
    return std::tuple(kNoSource, std::uint32_t{0});
  };
  std::stable_sort(diagnostics.begin(), diagnostics.end(),
                   [&](const Diagnostic& a, const Diagnostic& b) { return place(a) < place(b); });
}

}  // namespace capstan
