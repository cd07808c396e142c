// A config that one rule fires on and, where possible, no other: the solver proposes it, the evaluator
// confirms it over all rules. Where none is found, says whether none can exist.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/subject.h"
#include "compiler/solve/witness_domain.h"

namespace capstan {

struct Counterexample {
  /// sat: found and confirmed. unsat: proved that none exists, whatever value each key has. undecided: none
  /// among the values tried, or a limit was met.
  Answer answer = Answer::undecided;
  bool alone = false;                ///< nothing else of kind rejects or breaks fires
  bool limited = false;              ///< the search for one that fires alone met its limit
  std::vector<Assignment> settings;  ///< differences from the defaults, versions of libraries apart
  Facts facts;                       ///< the facts of that config
};

/// Positions of checks that fail and of rewrites that take effect.
std::set<std::uint32_t> firing_items(const RuleBook& book, const Facts& facts);

/// `empty` is a subject of a config without any setting. The item is a check or a rewrite.
Counterexample find_counterexample(const Subject& empty, const RuleProbes& probes, std::uint32_t position,
                                   const SmtOptions& options);

struct Accepted {
  Answer answer = Answer::undecided;  ///< unsat: every config of the values tried has a finding
  std::set<std::uint32_t> rules;      ///< positions of the rules that took part
};
/// Whether a config with one key so has no finding of kind rejects or breaks.
Accepted find_accepted(const Subject& empty, const RuleProbes& probes, const Assignment& fixed,
                       const SmtOptions& options);

}  // namespace capstan
