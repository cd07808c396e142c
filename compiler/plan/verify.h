// What must hold of a plan between passes; run after each of them. A violation is a fault of the compiler,
// never of the user's config, so it is a plain text for the report and stops compilation.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace capstan::plan {

/// How far the plan has come: what is not decided yet is not checked.
struct VerifyScope {
  bool segmented = false;  ///< segments partition the ops
  bool placed = false;     ///< offsets are final
};

/// Checks, in this order:
/// - ids are positions, names unique, extents positive, every operand exists and agrees with the op table;
/// - stages follow each other; every read has an earlier write in its stage, or the buffer is persistent;
///   activations and workspaces stay within one stage, workspaces within one op;
/// - random-number offsets are unique per forward site; a recomputed or backward op uses its site's own with
/// the same `p`;
/// - what a recomputed op reads still holds what the original read;
/// - segments: contiguous, complete, one stage each unless they hold the whole iteration, graphs with scope
/// and reason;
/// - placement: aligned, inside the arena, buffers that live at the same time apart, in-place pairs as the op
/// table allows;
/// - checks name i32 flags; the buffers that the runtime expects exist.
/// Gives the first violation, empty when there is none.
std::string verify(const Plan& plan, VerifyScope scope);

}  // namespace capstan::plan
