// How far the *rejects* rules agree with the verdicts of the real framework. Rules of the kinds breaks and
// advice never count; how often they fire is told beside.
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/conformance_table.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

struct Disagreement {
  enum class Kind {
    missed,       ///< the real code rejects; no rule fires
    false_alarm,  ///< the real code accepts; a rule fires
    unnamed       ///< both reject, but no rule that fires knows the real code's message
  };
  Kind kind;
  std::string id, stage, message;  ///< of the real verdict
  std::vector<std::string>
      fired;  ///< "CG004 graph-modules-moe-and-router"; "TY003 model.x" for a key the release lacks
};

struct Conformance {
  std::string stack;
  std::size_t cases = 0, agreed = 0;
  std::size_t rejected = 0, named = 0;  ///< by the real code; those whose reason is among ours
  std::size_t with_breaks = 0, with_advice = 0, undecided = 0;  ///< cases with such findings, told beside
  std::vector<Disagreement> disagreements;                      ///< in the order of the table

  double agreement() const;  ///< percent
};

/// Judges every verdict's case. Throws UsageError for a verdict whose case is not there.
Conformance judge_table(const RuleSet& rules, const Schema& schema, const Stack& stack,
                        const ConformanceCases& cases, const std::vector<RealVerdict>& verdicts);

/// `agreement 99.97 % (4385/4386), first reason named 99.8 % (2301/2305)`. Percentages are rounded down: 100
/// means all.
std::string summary_line(const Conformance& conformance);
/// The disagreements, one a line, and what was found beside.
std::string describe_disagreements(const Conformance& conformance);
/// The page of all tables, for docs/conformance.md.
std::string conformance_page(const std::vector<Conformance>& tables);

}  // namespace capstan
