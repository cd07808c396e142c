// The op table of docs/plan-format.md as code: operand counts, shapes, dtypes, attributes of each op kind,
// and which outputs may take the place of which inputs. The verifier asks after each pass; placement asks for
// sharing.
#pragma once

#include <cstddef>
#include <string>

#include "compiler/plan/plan.h"

namespace capstan::plan {

/// What is wrong with the op's operands or attributes, as one clause; empty when it agrees with the table.
/// Requires operand ids within the plan.
std::string find_operand_problem(const Plan& plan, const Op& op);

/// Whether output `output` may stand at the offset of input `input` ("in place" in the table).
bool may_share(const Op& op, std::size_t input, std::size_t output);

/// Draws random numbers (has `p` > 0 and an `rng_offset`).
bool draws_random_numbers(const Op& op);

}  // namespace capstan::plan
