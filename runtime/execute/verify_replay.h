// --verify-replay: one step run three times from the same state and batch: eagerly with a digest after every
// op, from recordings that hold the same digests, and from the recordings that training uses. All must agree
// bit for bit.
#pragma once

#include "runtime/execute/trainer.h"

namespace capstan::runtime {

/// Does the step that is staged. RN032 names the first op whose outputs differ, or the first buffer when only
/// the recordings without digests differ. Leaves the state after the replayed step; counts in
/// report.verification.
Status verify_step(Run& run);

}  // namespace capstan::runtime
