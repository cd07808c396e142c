// Copies between pageable host memory and the device through pinned buffers: uploads return as soon as the
// bytes are staged, so the caller's memory is free again and the device works on. Ordered on one stream.
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>

#include "runtime/device/backend.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime::cuda {

class Staging {
 public:
  static constexpr std::size_t kSlotBytes = std::size_t{2} << 20;

  static Outcome<std::unique_ptr<Staging>> make();
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  Status upload(cudaStream_t stream, void* device, std::span<const std::byte> bytes);
  /// Waits for the stream.
  Status download(cudaStream_t stream, const void* device, std::span<std::byte> bytes);

 private:
  Staging() = default;
  struct Slot {
    std::byte* memory = nullptr;  ///< pinned
    cudaEvent_t free = nullptr;   ///< recorded after the copy that reads the slot
  };
  std::array<Slot, Backend::kReadSlots> slots_;  ///< one for the batch of each step in flight
  std::size_t next_ = 0;
};

}  // namespace capstan::runtime::cuda
