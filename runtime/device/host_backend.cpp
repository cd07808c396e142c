#include "runtime/device/host_backend.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>
#include <map>
#include <string>

#include <fmt/format.h>

#include "runtime/device/digest.h"
#include "runtime/device/workers.h"
#include "runtime/execute/interrupt.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/philox.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime {
namespace {

using plan::Buffer;
using plan::BufferId;
using plan::DType;
using plan::OpId;
using plan::Plan;

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

std::uint64_t read_number(const char* path) {
  std::ifstream file(path);
  std::uint64_t value = 0;
  return file >> value ? value : 0;
}

struct HostMemory {
  std::uint64_t total = 0, free = 0;
};

/// What the kernel would give without swapping, or less where a control group limits the process.
HostMemory host_memory() {
  HostMemory memory;
  std::ifstream info("/proc/meminfo");
  std::string name, unit;
  for (std::uint64_t kib; info >> name >> kib; std::getline(info, unit)) {
    if (name == "MemTotal:") memory.total = kib * 1024;
    if (name == "MemAvailable:") memory.free = kib * 1024;
  }
  if (memory.total == 0) {
    memory.total = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                   static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    memory.free = memory.total;
  }
  if (const std::uint64_t limit = read_number("/sys/fs/cgroup/memory.max"); limit != 0) {
    const std::uint64_t used = std::min(limit, read_number("/sys/fs/cgroup/memory.current"));
    memory.total = std::min(memory.total, limit);
    memory.free = std::min(memory.free, limit - used);
  }
  return memory;
}

/// One entry of a recording: an op, or the digest of an op's outputs when `slot` is set.
struct RecordedCall {
  HostOp function = nullptr;
  const OpCall* call = nullptr;
  std::size_t slot = 0;
};

class HostBackend final : public Backend {
 public:
  explicit HostBackend(unsigned threads) : workers_(threads) {
    info_.backend = "host";
    info_.name = processor_name();
    const HostMemory memory = host_memory();
    info_.total_bytes = memory.total;
    info_.free_bytes = memory.free;
  }
  ~HostBackend() override { release_arena(); }

  const DeviceInfo& device() const override { return info_; }

  Status prepare(const Plan& plan) override {
    plan_ = &plan;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.dtype != DType::f16) continue;
      return run_problem(
          "RN024",
          fmt::format("the buffer `{}` is f16, which the host backend does not compute in", buffer.name), {},
          "use bf16 or fp32, or the cuda backend");
    }
    arena_bytes_ = std::max<std::uint64_t>(plan.memory.arena, 1);
    if (arena_bytes_ > info_.free_bytes) {
      return run_problem("RN020",
                         fmt::format("the plan needs {} bytes of memory, the host has {} free", arena_bytes_,
                                     info_.free_bytes),
                         {{"needed", static_cast<std::int64_t>(arena_bytes_)},
                          {"free", static_cast<std::int64_t>(info_.free_bytes)}},
                         "lower `train.micro_batch_size` or `model.seq_length`, or recompute activations");
    }
    void* mapped = mmap(nullptr, arena_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) {
      return run_problem(
          "RN020", fmt::format("the host refused {} bytes of memory for the plan's arena", arena_bytes_));
    }
    arena_ = static_cast<std::byte*>(mapped);
    calls_.reserve(plan.ops.size());
    for (const plan::Op& op : plan.ops) {
      OpCall& call = calls_.emplace_back();
      call.op = &op;
      call.dims = &plan.dims;
      call.seed = plan.seed;
      call.workers = &workers_;
      for (const BufferId id : op.inputs) call.inputs.push_back(operand(id));
      for (const BufferId id : op.outputs) call.outputs.push_back(operand(id));
    }
    return {};
  }

  Status initialize() override {
    for (const Buffer& buffer : plan_->buffers) {
      const bool persistent = buffer.role != plan::Role::activation && buffer.role != plan::Role::workspace;
      const Operand to = operand(buffer.id);
      switch (buffer.init.kind) {
        case plan::Init::Kind::none:
        case plan::Init::Kind::zeros:
          if (persistent) std::memset(to.data, 0, buffer.bytes());
          break;
        case plan::Init::Kind::ones:
          fill_ones(to);
          break;
        case plan::Init::Kind::normal:
          fill_normals(to, buffer.init);
          break;
      }
    }
    return {};
  }

  Status upload(BufferId buffer, std::span<const std::byte> bytes) override {
    std::memcpy(operand(buffer).data, bytes.data(), bytes.size());
    return {};
  }
  Status download(BufferId buffer, std::span<std::byte> bytes) override {
    std::memcpy(bytes.data(), operand(buffer).data, bytes.size());
    return {};
  }

  Status begin_read(std::span<const BufferId> buffers, std::size_t slot) override {
    std::vector<std::byte>& read = reads_.at(slot);
    read.clear();
    for (const BufferId id : buffers) {
      const std::byte* data = operand(id).as<std::byte>();
      read.insert(read.end(), data, data + plan_->buffers[id].bytes());
    }
    return {};
  }
  Status await_read(std::size_t slot, std::span<std::byte> bytes) override {
    std::copy(reads_.at(slot).begin(), reads_.at(slot).end(), bytes.begin());
    return {};
  }

  Status run(OpId op) override {
    if (std::exchange(fails_next_, false)) {
      return run_problem(
          "RN022",
          fmt::format("op {} `{}` failed, as the drill wants", op, plan::op_kind_name(plan_->ops[op].kind)),
          {}, "start again from the last checkpoint");
    }
    const RecordedCall entry{host_op(plan_->ops[op].kind), &calls_[op], 0};
    if (recording_ != nullptr) {
      recording_->push_back(entry);
      return {};
    }
    return execute_unless_stopped(entry);
  }

  Status begin_record(std::uint32_t key) override {
    recording_ = &recordings_[key];
    recording_->clear();
    began_ = Clock::now();
    return {};
  }
  Outcome<RecordingInfo> end_record() override {
    RecordingInfo info;
    recording_->shrink_to_fit();
    info.nodes = recording_->size();
    info.edges = info.nodes > 0 ? info.nodes - 1 : 0;
    std::size_t issue = 0;
    for (std::uint32_t i = 0; i < info.nodes; ++i) {
      // A digest belongs to the op before it.
      const bool is_op = (*recording_)[i].function != nullptr;
      if (is_op && i > 0) ++issue;
      info.listing.nodes.push_back(
          {"call", is_op ? plan::op_kind_name((*recording_)[i].call->op->kind) : "digest", issue});
      if (i > 0) info.listing.edges.emplace_back(i - 1, i);
    }
    info.bytes = recording_->capacity() * sizeof(RecordedCall);
    info.capture_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    recording_ = nullptr;
    return info;
  }
  Status replay(std::uint32_t key) override {
    for (const RecordedCall& entry : recordings_.at(key)) {
      if (Status executed = execute_unless_stopped(entry); !executed.ok()) return executed;
    }
    return {};
  }
  Status drop_recording(std::uint32_t key) override {
    recordings_.erase(key);
    return {};
  }

  Status reserve_digests(std::size_t count) override {
    digests_.assign(count, 0);
    digests_.shrink_to_fit();
    return {};
  }
  Status run_digest(OpId op, std::size_t slot) override {
    const RecordedCall entry{nullptr, &calls_[op], slot};
    if (recording_ != nullptr) {
      recording_->push_back(entry);
    } else {
      execute(entry);
    }
    return {};
  }
  Status read_digests(std::span<std::uint64_t> slots) override {
    std::copy_n(digests_.begin(), slots.size(), slots.begin());
    return {};
  }

  void fail_next_op() override { fails_next_ = true; }

  Status synchronize() override { return {}; }
  Status start_timer() override {
    timer_ = Clock::now();
    return {};
  }
  Outcome<double> stop_timer() override {
    return std::chrono::duration<double>(Clock::now() - timer_).count();
  }

  MemoryUse memory() const override {
    MemoryUse use;
    use.arena = resident_arena_bytes();
    use.other = digests_.capacity() * sizeof(std::uint64_t);
    for (const auto& [key, entries] : recordings_) use.other += entries.capacity() * sizeof(RecordedCall);
    peak_ = std::max(peak_, use.arena + use.other);
    use.peak = peak_;
    return use;
  }

  Status tear_down(std::string_view part) override {
    if (part == "graphs") {
      recording_ = nullptr;
      recordings_.clear();
    } else if (part == "arena") {
      release_arena();
    }
    return {};
  }

 private:
  using Clock = std::chrono::steady_clock;

  Operand operand(BufferId id) const {
    const Buffer& buffer = plan_->buffers[id];
    return {arena_ + buffer.offset, buffer.dtype, buffer.elements(), buffer.shape.back()};
  }

  /// A step may take minutes here: it is given up in the middle where a signal has waited long enough.
  Status execute_unless_stopped(const RecordedCall& entry) {
    if (Status on = go_on_unless_overdue(); !on.ok()) return on;
    execute(entry);
    return {};
  }

  void execute(const RecordedCall& entry) {
    if (entry.function != nullptr) return entry.function(*entry.call);
    std::uint64_t sum = 0, position = 0;
    for (std::size_t i = 0; i < entry.call->outputs.size(); ++i) {
      // What an op leaves in its workspace is its own business and may be what stood there before.
      if (plan_->buffers[entry.call->op->outputs[i]].role == plan::Role::workspace) continue;
      const Operand& output = entry.call->outputs[i];
      const std::uint64_t bytes = static_cast<std::uint64_t>(output.elements) * plan::size_of(output.dtype);
      sum += digest_bytes({output.data, bytes}, position);
      position += words_of(bytes);
    }
    digests_.at(entry.slot) = sum;
  }

  void fill_ones(const Operand& to) {
    switch (to.dtype) {
      case DType::i32:
        std::fill_n(to.as<std::int32_t>(), to.elements, 1);
        break;
      case DType::i64:
        std::fill_n(to.as<std::int64_t>(), to.elements, 1);
        break;
      case DType::u64:
        std::fill_n(to.as<std::uint64_t>(), to.elements, 1u);
        break;
      case DType::u8:
        std::fill_n(to.as<std::uint8_t>(), to.elements, std::uint8_t{1});
        break;
      default:
        for (std::int64_t i = 0; i < to.elements; ++i) store_one(to, 1.0, i);
    }
  }

  void fill_normals(const Operand& to, const plan::Init& init) {
    constexpr std::int64_t kChunk = 4096;
    workers_.for_ranges((to.elements + kChunk - 1) / kChunk, 1, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> values(kChunk);
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t at = chunk * kChunk, count = std::min(kChunk, to.elements - at);
        fill_normal(plan_->seed, init.stream, init.stddev, at, count, values.data());
        store(to, at, count, values.data());
      }
    });
  }

  std::uint64_t resident_arena_bytes() const {
    if (arena_ == nullptr) return 0;
    const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::vector<unsigned char> resident((arena_bytes_ + page - 1) / page);
    if (mincore(arena_, arena_bytes_, resident.data()) != 0) return arena_bytes_;
    const auto pages =
        std::count_if(resident.begin(), resident.end(), [](unsigned char flags) { return (flags & 1) != 0; });
    return std::min(static_cast<std::uint64_t>(pages) * page, arena_bytes_);
  }

  void release_arena() {
    recordings_.clear();
    calls_.clear();
    if (arena_ != nullptr) munmap(arena_, arena_bytes_);
    arena_ = nullptr;
  }

  DeviceInfo info_;
  Workers workers_;
  const Plan* plan_ = nullptr;
  std::byte* arena_ = nullptr;
  std::uint64_t arena_bytes_ = 0;
  std::vector<OpCall> calls_;  ///< by op id; recordings point into it
  std::map<std::uint32_t, std::vector<RecordedCall>> recordings_;
  std::vector<RecordedCall>* recording_ = nullptr;
  std::vector<std::uint64_t> digests_;
  std::array<std::vector<std::byte>, kReadSlots> reads_;
  bool fails_next_ = false;
  Clock::time_point began_, timer_;
  mutable std::uint64_t peak_ = 0;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(unsigned threads) {
  return std::make_unique<HostBackend>(threads);
}

}  // namespace capstan::runtime
