#include "runtime/device/workers.h"

#include <algorithm>

namespace capstan::runtime {

Workers::Workers(unsigned threads) {
  const unsigned wanted = std::clamp(threads == 0 ? std::thread::hardware_concurrency() : threads, 1u, 64u);
  for (unsigned i = 1; i < wanted; ++i) threads_.emplace_back([this, i] { serve(i); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::run_share(unsigned index) {
  const std::int64_t begin = loop_count_ * index / shares_, end = loop_count_ * (index + 1) / shares_;
  if (begin < end) (*work_)(begin, end);
}

void Workers::serve(unsigned index) {
  std::uint64_t seen = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [&] { return stopping_ || generation_ != seen; });
    if (stopping_) return;
    seen = generation_;
    if (index >= shares_) continue;
    lock.unlock();
    run_share(index);
    lock.lock();
    if (--unfinished_ == 0) done_.notify_one();
  }
}

void Workers::for_ranges(std::int64_t count, std::int64_t grain,
                         const std::function<void(std::int64_t, std::int64_t)>& work) {
  const std::int64_t most = std::max<std::int64_t>(1, count / std::max<std::int64_t>(1, grain));
  const unsigned shares = static_cast<unsigned>(std::min<std::int64_t>(most, this->count()));
  if (shares == 1) {
    if (count > 0) work(0, count);
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    work_ = &work;
    loop_count_ = count;
    shares_ = shares;
    unfinished_ = shares - 1;
    ++generation_;
  }
  wake_.notify_all();
  run_share(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [&] { return unfinished_ == 0; });
}

}  // namespace capstan::runtime
