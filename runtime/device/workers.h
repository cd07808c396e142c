// A fixed set of threads that share the iterations of one loop. Which thread takes which range depends only
// on the count, and ops make every result within one range, so results do not depend on the number of
// threads.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace capstan::runtime {

class Workers {
 public:
  /// `threads`: 0 takes the hardware's number; the calling thread is one of them.
  explicit Workers(unsigned threads = 0);
  ~Workers();
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  unsigned count() const { return static_cast<unsigned>(threads_.size()) + 1; }

  /// Calls `work(begin, end)` for disjoint ranges that cover 0..count, at least `grain` iterations each where
  /// there are so many; returns when all are done. `work` must not throw and must not call for_ranges itself.
  void for_ranges(std::int64_t count, std::int64_t grain,
                  const std::function<void(std::int64_t begin, std::int64_t end)>& work);

 private:
  void serve(unsigned index);
  void run_share(unsigned index);

  std::vector<std::thread> threads_;
  std::mutex mutex_;
  std::condition_variable wake_, done_;
  const std::function<void(std::int64_t, std::int64_t)>* work_ = nullptr;
  std::int64_t loop_count_ = 0;
  unsigned shares_ = 1;  ///< ranges of the present loop; threads beyond them rest
  std::uint64_t generation_ = 0;
  unsigned unfinished_ = 0;
  bool stopping_ = false;
};

}  // namespace capstan::runtime
