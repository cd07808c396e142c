#include "runtime/device/outcome.h"

#include <algorithm>
#include <stdexcept>

#include "compiler/diagnostics/codes.h"

namespace capstan::runtime {

Diagnostic run_problem(const char* code, std::string message, Arguments arguments, std::string help) {
  const CodeInfo* info = find_code(code);
  if (info == nullptr) throw std::logic_error(std::string("no such diagnostic code: ") + code);
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.name = info->name;
  diagnostic.severity = info->severity;
  diagnostic.message = std::move(message);
  std::sort(arguments.begin(), arguments.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  diagnostic.arguments = std::move(arguments);
  if (!help.empty()) diagnostic.notes.push_back({Note::Kind::help, std::move(help), {}});
  diagnostic.fingerprint = fingerprint(diagnostic);
  return diagnostic;
}

}  // namespace capstan::runtime
