// Values for the open keys of a config ("?" or named ones) with which no rule is violated: defaults where
// they do, then the widest capture scope, or what the user prefers. Confirmed by the evaluator over all
// rules.
#pragma once

#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/core.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct CompleteRequest {
  std::vector<FactId> open;
  std::vector<Assignment> prefer;  ///< outweigh defaults, the first most
  bool widest_scope = false;       ///< the widest capture scope outweighs defaults, too
  SmtOptions smt;
};

struct Completion {
  Answer answer = Answer::undecided;     ///< sat: `values`; unsat: `conflicts`
  std::vector<Assignment> values;        ///< one per open key
  std::vector<std::uint32_t> remaining;  ///< checks that stay violated and forbid nothing: advice, warnings
  ConflictSet conflicts;
};

Completion complete(const Subject& subject, const CompleteRequest& request);

}  // namespace capstan
