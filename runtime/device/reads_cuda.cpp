#include <algorithm>
#include <cstring>
#include <string>

#include "runtime/device/cuda_error.h"
#include "runtime/device/cuda_reads.h"

namespace capstan::runtime::cuda {

Outcome<std::unique_ptr<Reads>> Reads::make() {
  std::unique_ptr<Reads> reads(new Reads);
  for (Slot& slot : reads->slots_) {
    void* memory = nullptr;
    if (Status s = check(cudaHostAlloc(&memory, Backend::kReadBytes, cudaHostAllocDefault), "cudaHostAlloc");
        !s.ok()) {
      return s.error();
    }
    slot.memory = static_cast<std::byte*>(memory);
    if (Status s = check(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming), "cudaEventCreate");
        !s.ok()) {
      return s.error();
    }
  }
  return reads;
}

Reads::~Reads() {
  for (Slot& slot : slots_) {
    if (slot.done != nullptr) cudaEventDestroy(slot.done);
    if (slot.memory != nullptr) cudaFreeHost(slot.memory);
  }
}

Status Reads::begin(cudaStream_t stream, const std::vector<Range>& ranges, std::size_t index) {
  Slot& slot = slots_[index];
  slot.parts.clear();
  const auto copy = [&](std::size_t at, Range from) {
    return check(cudaMemcpyAsync(slot.memory + at, from.data(), from.size(), cudaMemcpyDeviceToHost, stream),
                 "cudaMemcpyAsync");
  };
  std::size_t total = 0;
  const std::byte* low = ranges.front().data();
  const std::byte* high = low;
  for (const Range& range : ranges) {
    total += range.size();
    low = std::min(low, range.data());
    high = std::max(high, range.data() + range.size());
  }
  if (total > Backend::kReadBytes) {
    return device_failure("begin_read", std::to_string(total) + " bytes do not fit a slot");
  }
  // Every copy stands in the device's way between two steps. Scalars lie side by side in the arena: one copy
  // of the stretch that holds them is quicker than one of each.
  const Range stretch(low, high);
  if (stretch.size() <= Backend::kReadBytes) {
    if (Status s = copy(0, stretch); !s.ok()) return s;
    for (const Range& range : ranges)
      slot.parts.emplace_back(slot.memory + (range.data() - low), range.size());
  } else {
    std::size_t at = 0;
    for (const Range& range : ranges) {
      if (Status s = copy(at, range); !s.ok()) return s;
      slot.parts.emplace_back(slot.memory + at, range.size());
      at += range.size();
    }
  }
  return check(cudaEventRecord(slot.done, stream), "cudaEventRecord");
}

Status Reads::await(std::size_t index, std::span<std::byte> bytes) {
  const Slot& slot = slots_[index];
  if (Status s = check(cudaEventSynchronize(slot.done), "cudaEventSynchronize"); !s.ok()) return s;
  for (const auto& part : slot.parts) {
    if (part.size() > bytes.size()) {
      return device_failure("await_read", "more bytes were read than are taken");
    }
    std::memcpy(bytes.data(), part.data(), part.size());
    bytes = bytes.subspan(part.size());
  }
  return {};
}

}  // namespace capstan::runtime::cuda
