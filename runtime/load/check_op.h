// What each op demands of its operands and attributes (docs/plan-format.md, table "Ops"), as a check on a
// plan whose buffers were already checked. Operand shapes are compared by element count and last extent, so
// [T, H] and [batch, seq, H] are the same to an op.
#pragma once

#include <optional>
#include <string>

#include "compiler/plan/plan.h"

namespace capstan::runtime {

/// The first thing that is wrong with the op, as a clause ("input 2 `x` has 12 elements, needs 16"); nothing
/// when sound.
std::optional<std::string> check_op(const plan::Plan& plan, const plan::Op& op);

}  // namespace capstan::runtime
