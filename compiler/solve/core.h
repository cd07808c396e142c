// All minimal conflicts of a config, complete or with keys left open: sets of settings that no completion can
// satisfy, each with the rules that make it one. Enumerated by seeds and their cores or maximal satisfiable
// sets (MARCO), up to a limit.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/constraints/smt.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct MinimalConflict {
  std::vector<FactId> keys;          ///< none can be left out; in the order of by_framework
  std::vector<std::uint32_t> rules;  ///< positions; none can be left out; framework order
};

struct ConflictSet {
  std::vector<MinimalConflict> conflicts;
  Answer answer = Answer::sat;  ///< sat: no conflict; unsat: conflicts; undecided: a limit was met
  bool complete = true;         ///< all minimal conflicts were found
};

/// `open` keys may take any value of their domain. Only checks that forbid() count.
ConflictSet find_conflicts(const Subject& subject, const std::vector<FactId>& open, std::size_t limit,
                           const SmtOptions& options);
/// The same with given domains. With `about`, only checks that read one of these keys count.
ConflictSet find_conflicts(const Subject& subject, const std::vector<OpenKey>& open,
                           const std::vector<FactId>* about, std::size_t limit, const SmtOptions& options);

}  // namespace capstan
