// Collects the diagnostics of one invocation in causal order. Not thread-safe; each worker has its own.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

class Sink {
 public:
  void report(Diagnostic diagnostic);
  /// Shorthand for a problem with one primary label. The severity comes from codes.def.
  void problem(const char* code, std::string message, Span where, std::string label = {});

  const std::vector<Diagnostic>& diagnostics() const { return diagnostics_; }
  std::vector<Diagnostic> take();
  std::size_t count(Severity severity) const;
  bool has_errors() const { return count(Severity::error) > 0; }

 private:
  std::vector<Diagnostic> diagnostics_;
};

/// Stable order for output: by source, then by primary place, then as reported.
void sort_for_output(std::vector<Diagnostic>& diagnostics);

}  // namespace capstan
