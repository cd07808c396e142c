// SIGINT and SIGTERM as a wish that the trainer reads between steps. The second signal ends the process at
// once, without teardown. SIGXFSZ is ignored, so that a file-size limit is a write error like a full disk.
#pragma once

namespace capstan::runtime {

void install_signal_handlers();
/// Number of the signal that asked to stop, 0 when none did.
int requested_signal();

}  // namespace capstan::runtime
