// Findings -> fixes. First those that the rule's author wrote, each completed by the solver where it alone
// would break another rule ("with what it needs"); where none of them works, the smallest repairs the solver
// finds. Every fix was re-checked on the changed config: it clears the finding and adds none; only then it is
// shown, and marked verified.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/fixes/edit.h"
#include "compiler/solve/check.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct SuggestOptions {
  std::size_t limit = 5;  ///< fixes per finding
  bool touch_model = false;
  std::uint32_t solver_timeout_ms = 2000;
  const std::set<std::string>* without = nullptr;  ///< fingerprints of findings that get none; null: all do
  std::shared_ptr<SolverContext> context;          ///< null: one for all findings of a call
};

/// An assignment of the solver as a change of its key.
KeyChange key_change(const Subject& subject, const Assignment& assignment);

/// What one authored fix makes of the facts; nothing when a value it sets is not known.
std::optional<std::vector<Assignment>> fix_assignments(const Subject& subject, const ResolvedFix& fix);

/// Whether one authored fix, with what it needs, clears its finding and adds none.
bool fix_can_work(const Subject& subject, std::uint32_t position, const ResolvedFix& fix,
                  const SmtOptions& options);

/// Adds fixes to the diagnostics of errors and warnings.
void add_fixes(const CheckRequest& request, Judgement& judgement, std::vector<Finding>& findings,
               const SuggestOptions& options);

/// find_violations and add_fixes (unless options.suggest_fixes is off), reported.
void check_and_suggest(const CheckRequest& request, const CheckOptions& options, Sink& sink);

}  // namespace capstan
