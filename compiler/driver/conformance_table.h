// Tables of verdicts of the real framework (JSON lines): cases, and what one release did with each. A case
// becomes a Config with its values as given: nothing is converted or checked against the schema.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/schema/schema.h"

namespace capstan {

struct ConformanceCase {
  Config config;
  /// Versions that the case states ("transformer-engine", "torch").
  std::vector<std::pair<std::string, Version>> components;
};

using ConformanceCases = std::map<std::string, ConformanceCase, std::less<>>;

struct RealVerdict {
  std::string id;
  bool rejected = false;
  std::string stage, message;  ///< for a reject: which check, and its first line
};

/// Adds the cases of one file. `{"enum": "CudaGraphScope.attn"}` becomes the string of an enum member; a case
/// without `arch` ran on compute capability 9.0. Throws UsageError with the line of what cannot be read.
void read_cases(const std::string& path, ConformanceCases& cases);
std::vector<RealVerdict> read_verdicts(const std::string& path);

/// The stack of "verdicts-<frontend>-<version>.jsonl": the one of that front-end and minor release. Nothing
/// if the name has another form or no stack fits.
std::optional<Stack> stack_of_table(const std::string& path, const Schema& schema);

}  // namespace capstan
