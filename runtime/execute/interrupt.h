// SIGINT and SIGTERM as a wish that the trainer reads between steps, and the host backend between ops and
// the sampler between samples once the step has been waited for long enough. The second signal ends the
// process at once, without teardown. SIGXFSZ is ignored, so that a file-size limit is a write error like a
// full disk.
#pragma once

#include <chrono>

#include "runtime/device/outcome.h"

namespace capstan::runtime {

/// How long a step that is under way may go on after the wish.
constexpr std::chrono::milliseconds kStopPatience{5000};

void install_signal_handlers(std::chrono::milliseconds patience = kStopPatience);
/// Number of the signal that asked to stop, 0 when none did.
int requested_signal();
/// Whether the wish is older than the patience.
bool stop_is_overdue();
/// RN033 when it is: for work inside a step that may take minutes.
Status go_on_unless_overdue();

}  // namespace capstan::runtime
