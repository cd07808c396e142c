// The rule set's own soundness, for one stack at a time: rules that nothing can violate (dead), rules that
// cannot be violated alone (implied by others), fixes that do not clear their own finding, values of an
// enumeration that the release lacks, rules of one name at once, and implementation values for which no
// config satisfies all rules.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/counterexample.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct AuditFinding {
  enum class Kind {
    dead,            ///< proved: no config of the release fires it
    unwitnessed,     ///< none of the values tried fires it
    no_such_key,     ///< dead here because the release lacks a key that it reads
    implied,         ///< fires together with others only
    unsound_fix,     ///< a fix that works on none of the configs that the rule fires on
    unknown_value,   ///< compares a key with a value that the release lacks
    duplicate_name,  ///< two rules of one name apply at once
    unsatisfiable,   ///< an implementation value that no config without findings has
    undecided        ///< the solver met its limit
  };
  Kind kind = Kind::dead;
  std::uint32_t position = 0;         ///< the rule
  std::string text;                   ///< one clause
  std::vector<std::uint32_t> others;  ///< implied: the rules that imply it; duplicate_name: the other one
  /// Implied rules are listed, not faulted: a framework checks some things twice. So are rules whose keys the
  /// release lacks, as long as they fire on another release.
  bool is_fault() const {
    return kind != Kind::implied && kind != Kind::undecided && kind != Kind::no_such_key;
  }
};
const char* audit_kind_name(AuditFinding::Kind kind);

struct RuleAudit {
  std::vector<AuditFinding> findings;
  std::map<std::uint32_t, Counterexample> examples;  ///< of the rules that can fire, by position
};

/// Everything but the fixes, which compiler/fixes tries. `empty` is a subject of a config without any
/// setting.
RuleAudit audit_rules(const Subject& empty, const RuleProbes& probes, const SmtOptions& options);

}  // namespace capstan
