#include "runtime/execute/teardown.h"

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

class Watchdog {
 public:
  explicit Watchdog(std::chrono::seconds limit) : thread_([this, limit] { watch(limit); }) {}
  ~Watchdog() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void now_releasing(std::string part) {
    const std::lock_guard lock(mutex_);
    part_ = std::move(part);
  }

 private:
  void watch(std::chrono::seconds limit) {
    std::unique_lock lock(mutex_);
    if (changed_.wait_for(lock, limit, [&] { return done_; })) return;
    const std::string text =
        fmt::format("error[RN034] the device did not release its `{}` within {} s; the process ends itself\n",
                    part_, limit.count());
    std::fputs(text.c_str(), stderr);
    std::fflush(stderr);
    _exit(4);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::string part_;
  bool done_ = false;
  std::thread thread_;
};

}  // namespace

Status tear_down(const plan::Plan& plan, Backend& backend, std::chrono::seconds limit) {
  Watchdog watchdog(limit);
  Status first;
  for (const std::string& part : plan.teardown) {
    watchdog.now_releasing(part);
    Status released = backend.tear_down(part);
    if (first.ok() && !released.ok()) first = released;
  }
  return first;
}

}  // namespace capstan::runtime
