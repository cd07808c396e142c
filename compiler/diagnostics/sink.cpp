#include "compiler/diagnostics/sink.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/diagnostics/codes.h"

namespace capstan {

void Sink::report(Diagnostic diagnostic) {
  if (diagnostic.fingerprint.empty()) diagnostic.fingerprint = fingerprint(diagnostic);
  diagnostics_.push_back(std::move(diagnostic));
}

void Sink::problem(const char* code, std::string message, Span where, std::string label) {
  report(start_problem(code, std::move(message), where, std::move(label)));
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
