// --compare eager: after warm-up and capture, pairs of steps from the same state and batch, one eager and one
// captured, in alternating order, timed on the device. Says whether the bits agree and what capture brings,
// which may be nothing.
#pragma once

#include "runtime/execute/trainer.h"

namespace capstan::runtime {

/// Fills report.comparison. Ok also when losses differ: then report.status is "replay_differs".
Status compare_with_eager(Run& run);

/// The verdict on two spreads of step times in milliseconds, in words.
std::string speed_verdict(const Spread& eager_ms, const Spread& captured_ms);

}  // namespace capstan::runtime
