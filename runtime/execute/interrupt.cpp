#include "runtime/execute/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace capstan::runtime {
namespace {

std::atomic<int> signal_seen{0};
static_assert(std::atomic<int>::is_always_lock_free);

extern "C" void note_signal(int number) {
  int none = 0;
  if (!signal_seen.compare_exchange_strong(none, number)) _exit(128 + number);
}

}  // namespace

void install_signal_handlers() {
  struct sigaction action {};
  action.sa_handler = note_signal;
  sigemptyset(&action.sa_mask);
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  std::signal(SIGXFSZ, SIG_IGN);
}

int requested_signal() {
  return signal_seen.load();
}

}  // namespace capstan::runtime
