#include "runtime/execute/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <ctime>

namespace capstan::runtime {
namespace {

std::atomic<int> signal_seen{0};
std::atomic<std::int64_t> overdue_at{0};  ///< nanoseconds of the steady clock; 0: not known yet
std::atomic<std::int64_t> patience_ns{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);

/// Safe in a signal handler, as clock_gettime is.
std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

extern "C" void note_signal(int number) {
  int none = 0;
  if (!signal_seen.compare_exchange_strong(none, number)) _exit(128 + number);
  overdue_at.store(now_ns() + patience_ns.load());
}

}  // namespace

void install_signal_handlers(std::chrono::milliseconds patience) {
  patience_ns.store(std::chrono::nanoseconds(patience).count());
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

bool stop_is_overdue() {
  if (signal_seen.load(std::memory_order_relaxed) == 0) return false;
  const std::int64_t end = overdue_at.load();
  return end != 0 && now_ns() >= end;
}

Status go_on_unless_overdue() {
  if (stop_is_overdue()) return run_problem("RN033", "a signal stopped the run in the middle of a step");
  return {};
}

}  // namespace capstan::runtime
