// Capstan's own diagnostic codes, from codes.def.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

struct CodeInfo {
  std::string_view code;  ///< "SY001"
  Severity severity;
  std::string_view name;  ///< "syntax-error"
  std::string_view title;
};

const std::vector<CodeInfo>& builtin_codes();
/// Null for codes of rules.
const CodeInfo* find_code(std::string_view code);

/// A problem of Capstan's own with name and severity of its code; one primary label where the place exists.
/// Throws std::logic_error for a code that codes.def does not have.
Diagnostic start_problem(std::string_view code, std::string message, Span place = {}, std::string label = {});

}  // namespace capstan
