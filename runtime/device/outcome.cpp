#include "runtime/device/outcome.h"

#include <algorithm>

#include "compiler/diagnostics/codes.h"

namespace capstan::runtime {

Diagnostic run_problem(const char* code, std::string message, Arguments arguments, std::string help) {
  Diagnostic diagnostic = start_problem(code, std::move(message));
  std::sort(arguments.begin(), arguments.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  diagnostic.arguments = std::move(arguments);
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, std::move(help), {}});
  diagnostic.fingerprint = fingerprint(diagnostic);
  return diagnostic;
}

}  // namespace capstan::runtime
