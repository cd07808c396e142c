#include <algorithm>
#include <cstring>

#include "runtime/device/cuda_error.h"
#include "runtime/device/cuda_staging.h"

namespace capstan::runtime::cuda {

Outcome<std::unique_ptr<Staging>> Staging::make() {
  std::unique_ptr<Staging> staging(new Staging);
  for (Slot& slot : staging->slots_) {
    void* memory = nullptr;
    if (Status s = check(cudaHostAlloc(&memory, kSlotBytes, cudaHostAllocDefault), "cudaHostAlloc");
        !s.ok()) {
      return s.error();
    }
    slot.memory = static_cast<std::byte*>(memory);
    if (Status s = check(cudaEventCreateWithFlags(&slot.free, cudaEventDisableTiming), "cudaEventCreate");
        !s.ok()) {
      return s.error();
    }
  }
  return staging;
}

Staging::~Staging() {
  for (Slot& slot : slots_) {
    if (slot.free != nullptr) cudaEventDestroy(slot.free);
    if (slot.memory != nullptr) cudaFreeHost(slot.memory);
  }
}

Status Staging::upload(cudaStream_t stream, void* device, std::span<const std::byte> bytes) {
  auto* to = static_cast<std::byte*>(device);
  while (!bytes.empty()) {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    const std::size_t part = std::min(bytes.size(), kSlotBytes);
    if (Status s = check(cudaEventSynchronize(slot.free), "cudaEventSynchronize"); !s.ok()) return s;
    std::memcpy(slot.memory, bytes.data(), part);
    if (Status s =
            check(cudaMemcpyAsync(to, slot.memory, part, cudaMemcpyHostToDevice, stream), "cudaMemcpyAsync");
        !s.ok()) {
      return s;
    }
    if (Status s = check(cudaEventRecord(slot.free, stream), "cudaEventRecord"); !s.ok()) return s;
    bytes = bytes.subspan(part);
    to += part;
  }
  return {};
}

Status Staging::download(cudaStream_t stream, const void* device, std::span<std::byte> bytes) {
  const auto* from = static_cast<const std::byte*>(device);
  while (!bytes.empty()) {
    Slot& slot = slots_[next_];
    next_ = (next_ + 1) % slots_.size();
    const std::size_t part = std::min(bytes.size(), kSlotBytes);
    // The stream is waited for below, so nothing else reads the slot any more.
    if (Status s = check(cudaEventSynchronize(slot.free), "cudaEventSynchronize"); !s.ok()) return s;
    if (Status s = check(cudaMemcpyAsync(slot.memory, from, part, cudaMemcpyDeviceToHost, stream),
                         "cudaMemcpyAsync");
        !s.ok()) {
      return s;
    }
    if (Status s = check(cudaStreamSynchronize(stream), "cudaStreamSynchronize"); !s.ok()) return s;
    std::memcpy(bytes.data(), slot.memory, part);
    bytes = bytes.subspan(part);
    from += part;
  }
  return {};
}

}  // namespace capstan::runtime::cuda
