// The rule set's own soundness, for one stack at a time: rules that nothing can violate (dead), rules that
// cannot be violated alone (implied by others), fixes that do not clear their own finding, values of an
// enumeration that the release lacks, rules of one name at once, and implementation values for which no
// config satisfies all rules.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct AuditFinding {
  enum class Kind { dead, implied, unsound_fix, unknown_value, duplicate_name, unsatisfiable, undecided };
  Kind kind = Kind::dead;
  std::uint32_t position = 0;         ///< the rule; meaningless for unsatisfiable
  std::string text;                   ///< one clause
  std::vector<std::uint32_t> others;  ///< implied: the rules that imply it; duplicate_name: the other one
  /// Implied rules are listed, not faulted: a framework checks some things twice.
  bool is_fault() const { return kind != Kind::implied && kind != Kind::undecided; }
};
const char* audit_kind_name(AuditFinding::Kind kind);

/// A config that violates one check and, where possible, no other; the counterexample that its fixes are
/// tried on.
struct Counterexample {
  Answer answer = Answer::undecided;  ///< unsat: nothing violates the check
  bool alone = false;
  std::vector<Assignment> settings;  ///< differences from the defaults
};
Counterexample find_counterexample(const RuleBook& book, std::uint32_t position, SmtOptions options);

/// Everything but the fixes, which compiler/fixes tries.
std::vector<AuditFinding> audit_rules(const RuleBook& book, SmtOptions options);

}  // namespace capstan
