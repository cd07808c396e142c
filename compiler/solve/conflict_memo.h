// Explanations of violated checks, kept for the configs of one stack: what a check says about a config
// depends only on the facts that it reads, and configs of one batch mostly repeat them. Gives exactly what
// explaining each check on its own gives.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

#include "compiler/constraints/smt.h"
#include "compiler/solve/conflict.h"
#include "compiler/solve/subject.h"

namespace capstan {

/// For subjects of one RuleBook. Not thread-safe.
class ConflictMemo {
 public:
  /// The conflict of the violated check; lists in which the solver names no element are narrowed by
  /// elements_at_fault().
  Conflict explain(const Subject& subject, std::uint32_t position, const SmtOptions& options);

 private:
  std::unordered_map<std::string, Conflict> known_;  // by what it depends on
};

}  // namespace capstan
