// How many findings of one code are shown for one file: a generated file with a hundred thousand unknown keys
// is told by the first of them.
#pragma once

#include <cstddef>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

inline constexpr std::size_t kMostFindingsOfACode = 1000;  ///< in one file

/// Keeps the first findings of each code and file, sorted for output; for the others one closing finding
/// (TL003, at the first of them, as severe as the worst of them) says how many they are.
void bound_findings(std::vector<Diagnostic>& diagnostics, std::size_t most = kMostFindingsOfACode);

}  // namespace capstan
