// Whether the open keys of a config can be filled so that no rule forbids the result: some filling, with no
// preference among them. The solver proposes, the evaluator confirms. compiler/solve/complete.h finds the
// filling that a user wants.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include "compiler/constraints/encode.h"
#include "compiler/constraints/smt.h"
#include "compiler/solve/domain.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct Filling {
  Answer answer = Answer::undecided;  ///< unsat: none of the values of the domains will do
  std::vector<Assignment> values;     ///< sat: one for each open key
};

/// What a model of the encoding gives the open keys; keys whose value it cannot tell are left out.
std::vector<Assignment> decoded(const Encoding& encoding, const std::vector<OpenKey>& open);

/// Checks that read a key of `about` and forbid() count. `rules` holds positions of checks that took part in
/// earlier questions about the same keys, and gains those that take part in this one.
Filling fill(const Subject& subject, const std::vector<OpenKey>& open, const std::vector<FactId>& about,
             std::set<std::uint32_t>& rules, const SmtOptions& options);

}  // namespace capstan
