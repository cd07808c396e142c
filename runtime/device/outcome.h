// How failure crosses a seam of the runtime: as a value that holds one diagnostic, never as an exception. A
// Status is "done" or a diagnostic; an Outcome<T> is a value or a diagnostic. Both must be looked at
// (nodiscard).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan::runtime {

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Diagnostic diagnostic) : error_(std::move(diagnostic)) {}

  bool ok() const { return !error_.has_value(); }
  /// Requires !ok().
  const Diagnostic& error() const { return *error_; }

 private:
  std::optional<Diagnostic> error_;
};

template <typename T>
class [[nodiscard]] Outcome {
 public:
  Outcome(T value) : content_(std::move(value)) {}
  Outcome(Diagnostic diagnostic) : content_(std::move(diagnostic)) {}

  bool ok() const { return content_.index() == 0; }
  /// Requires ok().
  T& value() { return std::get<0>(content_); }
  const T& value() const { return std::get<0>(content_); }
  /// Requires !ok().
  const Diagnostic& error() const { return std::get<1>(content_); }

 private:
  std::variant<T, Diagnostic> content_;
};

using Arguments = std::vector<std::pair<std::string, Value>>;

/// A problem of the run with a code of codes.def (RN0xx); severity and name come from there. `help` becomes a
/// note that says the way out; it may be empty. Arguments are sorted by name here.
Diagnostic run_problem(const char* code, std::string message, Arguments arguments = {},
                       std::string help = {});

}  // namespace capstan::runtime
