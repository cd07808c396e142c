// Small copies from the device that the host waits for later: each slot is pinned host memory and an event
// behind its copies, so that waiting for one does not wait for what was issued after it. On one stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "runtime/device/backend.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime::cuda {

class Reads {
 public:
  static Outcome<std::unique_ptr<Reads>> make();
  ~Reads();
  Reads(const Reads&) = delete;
  Reads& operator=(const Reads&) = delete;

  using Range = std::span<const std::byte>;  ///< device memory
  /// Backend::begin_read; the ranges lie in one allocation.
  Status begin(cudaStream_t stream, const std::vector<Range>& ranges, std::size_t slot);
  /// Backend::await_read.
  Status await(std::size_t slot, std::span<std::byte> bytes);

 private:
  Reads() = default;
  struct Slot {
    std::byte* memory = nullptr;  ///< pinned
    cudaEvent_t done = nullptr;
    std::vector<std::span<const std::byte>> parts;  ///< of `memory`, one a range
  };
  std::array<Slot, Backend::kReadSlots> slots_;
};

}  // namespace capstan::runtime::cuda
