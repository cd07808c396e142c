#include "runtime/device/cuda_backend.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <utility>

#include "runtime/device/cuda_error.h"
#include "runtime/device/cuda_ranges.h"
#include "runtime/device/cuda_reads.h"
#include "runtime/device/cuda_staging.h"
#include "runtime/device/digest.h"
#include "runtime/graph/cuda_graph.h"
#include "runtime/ops/cuda_bind.h"

namespace capstan::runtime {
namespace {

using namespace cuda;
using plan::Buffer;
using plan::BufferId;
using plan::OpId;
using plan::Plan;

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

bool switched_off(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && std::string(value) == "off";
}

class CudaBackend final : public Backend {
 public:
  ~CudaBackend() override {
    for (const char* part : {"graphs", "libraries", "streams", "arena"}) static_cast<void>(tear_down(part));
  }

  static Outcome<std::unique_ptr<Backend>> open(int index) {
    int count = 0;
    const cudaError_t counted = cudaGetDeviceCount(&count);
    if (counted != cudaSuccess || count == 0) {
      cudaGetLastError();
      return no_device(counted == cudaSuccess ? "the driver sees no device" : cudaGetErrorString(counted));
    }
    if (index < 0 || index >= count) {
      return no_device("device " + std::to_string(index) + " was asked for, and there are " +
                       std::to_string(count));
    }
    auto backend = std::make_unique<CudaBackend>();
    if (Status s = check(cudaSetDevice(index), "cudaSetDevice"); !s.ok()) return s.error();
    cudaDeviceProp properties = {};
    if (Status s = check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties"); !s.ok()) {
      return s.error();
    }
    if (const cudaError_t probe = probe_kernels(); probe != cudaSuccess) {
      cudaGetLastError();
      return no_device(std::string(properties.name) + " has compute capability " +
                       std::to_string(properties.major) + "." + std::to_string(properties.minor) +
                       ", and this build has no code for it (" + cudaGetErrorString(probe) + ")");
    }
    // A device without the library is a broken installation, not a missing device: it is said, not passed
    // over.
    if (const auto library = CublasLt::open(); !library.ok()) return library.error();
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    if (Status s = check(cudaMemGetInfo(&free_bytes, &total_bytes), "cudaMemGetInfo"); !s.ok())
      return s.error();
    int driver = 0;
    int runtime = 0;
    cudaDriverGetVersion(&driver);
    cudaRuntimeGetVersion(&runtime);
    backend->info_.backend = "cuda";
    backend->info_.name = properties.name;
    backend->info_.asynchronous = true;
    backend->info_.total_bytes = total_bytes;
    backend->info_.free_bytes = free_bytes;
    backend->info_.driver = "CUDA driver " + version_text(driver) + ", runtime " + version_text(runtime);
    backend->device_ = index;
    return Outcome<std::unique_ptr<Backend>>(std::move(backend));
  }

  const DeviceInfo& device() const override { return info_; }

  Status prepare(const Plan& plan) override {
    plan_ = &plan;
    if (Status s = check(cudaSetDevice(device_), "cudaSetDevice"); !s.ok()) return s;
    std::size_t total = 0;
    if (Status s = check(cudaMemGetInfo(&baseline_free_, &total), "cudaMemGetInfo"); !s.ok()) return s;
    arena_bytes_ = std::max<std::uint64_t>(plan.memory.arena, plan::kBufferAlignment);
    // Twice: a plan that is far too large is refused before libraries are loaded, one that they make too
    // large before memory is taken for it.
    if (Status s = check_room(0); !s.ok()) return s;
    if (Status s = check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
        !s.ok()) {
      return s;
    }
    for (cudaEvent_t* event : {&timer_begin_, &timer_end_}) {
      if (Status s = check(cudaEventCreate(event), "cudaEventCreate"); !s.ok()) return s;
    }
    if (Status s = open_libraries(); !s.ok()) return s;
    if (Status s = bindings_->find_extra_workspaces(); !s.ok()) return s;
    if (Status s = check_room(bindings_->extra_bytes()); !s.ok()) return s;
    Outcome<std::unique_ptr<Staging>> staging = Staging::make();
    if (!staging.ok()) return staging.error();
    staging_ = std::move(staging.value());
    Outcome<std::unique_ptr<Reads>> reads = Reads::make();
    if (!reads.ok()) return reads.error();
    reads_ = std::move(reads.value());
    if (Status s = check(cudaMalloc(&arena_, arena_bytes_), "cudaMalloc"); !s.ok()) return s;
    if (Status s = bindings_->allocate_extra_workspaces(); !s.ok()) return s;
    if (Status s = bind(); !s.ok()) return s;
    note_peak();
    return {};
  }

  Status initialize() override {
    for (const Buffer& buffer : plan_->buffers) {
      if (Status s = initialize(buffer); !s.ok()) return s;
    }
    return synchronize();
  }

  Status upload(BufferId buffer, std::span<const std::byte> bytes) override {
    return staging_->upload(stream_, bindings_->at(buffer), bytes);
  }

  Status download(BufferId buffer, std::span<std::byte> bytes) override {
    if (Status s = staging_->download(stream_, bindings_->at(buffer), bytes); !s.ok()) return s;
    return {};
  }

  Status begin_read(std::span<const BufferId> buffers, std::size_t slot) override {
    ranges_.leave();
    std::vector<Reads::Range> ranges;
    for (const BufferId id : buffers) ranges.emplace_back(bindings_->at(id), plan_->buffers[id].bytes());
    return reads_->begin(stream_, ranges, slot);
  }
  Status await_read(std::size_t slot, std::span<std::byte> bytes) override {
    return reads_->await(slot, bytes);
  }

  Status run(OpId op) override {
    ranges_.enter(segment_of_[op]);
    if (Status s = launch(op); !s.ok()) return s;
    if (capture_ != nullptr) return capture_->note_op(plan_->ops[op]);
    return {};
  }

  Status begin_record(std::uint32_t key) override {
    ranges_.leave();
    Outcome<std::unique_ptr<GraphCapture>> capture = GraphCapture::begin(stream_);
    if (!capture.ok()) return capture.error();
    capture_ = std::move(capture.value());
    capture_key_ = key;
    return {};
  }

  Outcome<RecordingInfo> end_record() override {
    ranges_.leave();
    RecordingInfo info;
    std::unique_ptr<GraphExecutable> earlier;
    if (const auto known = graphs_.find(capture_key_); known != graphs_.end()) {
      earlier = std::move(known->second);
      graphs_.erase(known);
    }
    Outcome<std::unique_ptr<GraphExecutable>> graph = capture_->finish(std::move(earlier), info);
    capture_ = nullptr;
    if (!graph.ok()) return graph.error();
    graphs_[capture_key_] = std::move(graph.value());
    if (!info.updated) graph_bytes_[capture_key_] = info.bytes;
    note_peak();
    return info;
  }

  Status replay(std::uint32_t key) override {
    const auto graph = graphs_.find(key);
    if (graph == graphs_.end())
      return device_failure("replay", "there is no recording " + std::to_string(key));
    ranges_.enter(key < plan_->segments.size() ? key : SegmentRanges::kNone);
    return graph->second->launch(stream_);
  }

  Status drop_recording(std::uint32_t key) override {
    if (Status s = synchronize(); !s.ok()) return s;
    graphs_.erase(key);
    graph_bytes_.erase(key);
    return {};
  }

  Status reserve_digests(std::size_t count) override {
    if (Status s = synchronize(); !s.ok()) return s;
    if (digests_ != nullptr) cudaFree(digests_);
    digests_ = nullptr;
    digest_count_ = count;
    if (count == 0) return {};
    void* memory = nullptr;
    if (Status s = check(cudaMalloc(&memory, count * sizeof(std::uint64_t)), "cudaMalloc"); !s.ok()) return s;
    digests_ = static_cast<std::uint64_t*>(memory);
    note_peak();
    return {};
  }

  Status run_digest(OpId op, std::size_t slot) override {
    std::uint64_t* to = digests_ + slot;
    if (Status s = check(cudaMemsetAsync(to, 0, sizeof(*to), stream_), "cudaMemsetAsync"); !s.ok()) return s;
    std::uint64_t position = 0;
    for (const BufferId id : plan_->ops[op].outputs) {
      if (plan_->buffers[id].role == plan::Role::workspace) continue;
      const std::uint64_t bytes = plan_->buffers[id].bytes();
      launch_digest(stream_, bindings_->at(id), bytes, position, to);
      position += words_of(bytes);
    }
    if (Status s = check(cudaGetLastError(), "digest", &plan_->ops[op]); !s.ok()) return s;
    return capture_ != nullptr ? capture_->note_more() : Status();
  }

  Status read_digests(std::span<std::uint64_t> slots) override {
    return staging_->download(stream_, digests_, std::as_writable_bytes(slots));
  }

  void fail_next_op() override { fails_next_ = true; }

  Status synchronize() override {
    ranges_.leave();
    return check(cudaStreamSynchronize(stream_), "cudaStreamSynchronize");
  }

  Status start_timer() override { return check(cudaEventRecord(timer_begin_, stream_), "cudaEventRecord"); }
  Outcome<double> stop_timer() override {
    float milliseconds = 0;
    cudaError_t error = cudaEventRecord(timer_end_, stream_);
    if (error == cudaSuccess) error = cudaEventSynchronize(timer_end_);
    if (error == cudaSuccess) error = cudaEventElapsedTime(&milliseconds, timer_begin_, timer_end_);
    if (error != cudaSuccess) return device_failure("cudaEventElapsedTime", error);
    return static_cast<double>(milliseconds) / 1000.0;
  }

  MemoryUse memory() const override {
    MemoryUse use;
    use.arena = arena_ != nullptr ? arena_bytes_ : 0;
    use.other = digest_count_ * sizeof(std::uint64_t);
    if (bindings_ != nullptr) {
      use.other += bindings_->extra_bytes() + bindings_->table_bytes;
    }
    for (const auto& [key, bytes] : graph_bytes_) use.other += bytes;
    use.baseline = info_.total_bytes - std::min<std::uint64_t>(info_.total_bytes, baseline_free_);
    note_peak();
    use.peak = std::max(peak_, use.arena + use.other);
    return use;
  }

  Status tear_down(std::string_view part) override {
    if (part == "graphs") {
      ranges_.leave();
      capture_ = nullptr;
      if (stream_ != nullptr) cudaStreamSynchronize(stream_);  // a graph that runs must not be destroyed
      graphs_.clear();
      graph_bytes_.clear();
    } else if (part == "libraries") {
      launches_.clear();
      bindings_ = nullptr;
      if (digests_ != nullptr) cudaFree(std::exchange(digests_, nullptr));
      digest_count_ = 0;
    } else if (part == "streams") {
      // Copies into pinned memory may be under way in a plan that releases nothing else before.
      if (stream_ != nullptr) cudaStreamSynchronize(stream_);
      staging_ = nullptr;
      reads_ = nullptr;
      for (cudaEvent_t* event : {&timer_begin_, &timer_end_}) {
        if (*event != nullptr) cudaEventDestroy(std::exchange(*event, nullptr));
      }
      if (stream_ != nullptr) cudaStreamDestroy(std::exchange(stream_, nullptr));
    } else if (part == "arena") {
      if (arena_ != nullptr) cudaFree(std::exchange(arena_, nullptr));
    }
    // What failed before is reported by the call that failed; releasing goes on whatever state the device is
    // in.
    cudaGetLastError();
    return {};
  }

 private:
  static Diagnostic no_device(const std::string& why) {
    return run_problem(
        "RN021", "no CUDA device can be used: " + why, {{"reason", Value(why)}},
        "run on a machine with a supported GPU and driver, or set `execute.backend = \"host\"`");
  }

  Status check_room(std::size_t extra) const {
    std::size_t free_now = 0;
    std::size_t total = 0;
    if (Status s = check(cudaMemGetInfo(&free_now, &total), "cudaMemGetInfo"); !s.ok()) return s;
    const std::uint64_t needed = arena_bytes_ + extra;
    if (needed <= free_now) return {};
    const std::string besides =
        extra == 0 ? "" : " and " + std::to_string(extra) + " bytes of workspace for the device's libraries";
    return run_problem(
        "RN020",
        "the plan's peak is " + std::to_string(arena_bytes_) + " bytes" + besides + ", and `" + info_.name +
            "` has " + std::to_string(free_now) + " of " + std::to_string(total) + " bytes free",
        {{"needed", static_cast<std::int64_t>(needed)}, {"free", static_cast<std::int64_t>(free_now)}},
        "lower `train.micro_batch_size` or `model.seq_length`, or recompute activations");
  }

  Status open_libraries() {
    bindings_ = std::make_unique<Bindings>();
    bindings_->plan = plan_;
    bindings_->stream = stream_;
    Outcome<std::unique_ptr<GemmLibrary>> gemms =
        GemmLibrary::open(info_.name, !switched_off("CAPSTAN_GEMM_TUNING"), plan_->deterministic);
    if (!gemms.ok()) return gemms.error();
    bindings_->gemms = std::move(gemms.value());
    info_.driver += ", cuBLASLt " + std::to_string(bindings_->gemms->version());
    const bool has_attention = std::any_of(plan_->ops.begin(), plan_->ops.end(), [](const plan::Op& op) {
      return op.kind == plan::OpKind::attention;
    });
    if (!has_attention) return {};
    std::string why_not;
    bindings_->cudnn = CudnnLibrary::open(why_not);
    info_.driver += bindings_->cudnn != nullptr ? ", cuDNN " + std::to_string(bindings_->cudnn->version())
                                                : ", own attention (" + why_not + ")";
    return {};
  }

  Status bind() {
    bindings_->arena = static_cast<std::byte*>(arena_);
    segment_of_.assign(plan_->ops.size(), 0);
    ranges_.name(*plan_);
    for (const plan::Segment& segment : plan_->segments) {
      for (OpId op = segment.first_op; op < segment.end_op; ++op) segment_of_[op] = segment.id;
    }
    launches_.reserve(plan_->ops.size());
    for (const plan::Op& op : plan_->ops) {
      Outcome<Launch> bound = bind_op(*bindings_, op);
      if (!bound.ok()) return bound.error();
      launches_.push_back(std::move(bound.value()));
    }
    bindings_->gemms->save_choices();
    // Every op runs once on whatever the arena holds, so that no kernel is loaded while a stream captures and
    // an op that the device refuses is known by name now. `initialize` gives all buffers their contents
    // afterwards.
    for (const plan::Op& op : plan_->ops) {
      if (Status s = launch(op.id); !s.ok()) return s;
    }
    return synchronize();
  }

  Status launch(OpId op) {
    if (std::exchange(fails_next_, false)) {
      launch_refused_kernel(stream_);
    } else if (Status s = launches_[op](stream_); !s.ok()) {
      return s;
    }
    const cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) return {};
    return device_failure("kernel launch", error, &plan_->ops[op]);
  }

  Status initialize(const Buffer& buffer) {
    const bool persistent = buffer.role != plan::Role::activation && buffer.role != plan::Role::workspace;
    std::byte* at = bindings_->at(buffer.id);
    const bool floats = buffer.dtype == plan::DType::f32 || buffer.dtype == plan::DType::bf16;
    const Floats out{at, buffer.dtype == plan::DType::bf16 ? Storage::bf16 : Storage::f32};
    switch (buffer.init.kind) {
      case plan::Init::Kind::none:
      case plan::Init::Kind::zeros:
        if (!persistent) return {};
        return check(cudaMemsetAsync(at, 0, buffer.bytes(), stream_), "cudaMemsetAsync");
      case plan::Init::Kind::ones:
        if (!floats) break;
        launch_fill(stream_, out, buffer.elements(), 1.0F);
        return check(cudaGetLastError(), "fill");
      case plan::Init::Kind::normal:
        if (!floats) break;
        launch_normal(stream_, out, buffer.elements(), plan_->seed, buffer.init.stream, buffer.init.stddev);
        return check(cudaGetLastError(), "normal");
    }
    return run_problem("RN024", "the cuda backend cannot fill `" + buffer.name + "`, which is " +
                                    plan::dtype_name(buffer.dtype) + ", with ones or normals");
  }

  void note_peak() const {
    std::size_t free_now = 0;
    std::size_t total = 0;
    if (cudaMemGetInfo(&free_now, &total) != cudaSuccess) return;
    if (baseline_free_ > free_now) peak_ = std::max<std::uint64_t>(peak_, baseline_free_ - free_now);
  }

  DeviceInfo info_;
  int device_ = 0;
  const Plan* plan_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t timer_begin_ = nullptr, timer_end_ = nullptr;
  std::unique_ptr<Staging> staging_;
  std::unique_ptr<Reads> reads_;
  void* arena_ = nullptr;
  std::uint64_t arena_bytes_ = 0;
  std::unique_ptr<Bindings> bindings_;
  std::vector<Launch> launches_;           ///< by op id
  std::vector<std::uint32_t> segment_of_;  ///< by op id
  SegmentRanges ranges_;
  std::unique_ptr<GraphCapture> capture_;
  std::uint32_t capture_key_ = 0;
  std::map<std::uint32_t, std::unique_ptr<GraphExecutable>> graphs_;
  std::map<std::uint32_t, std::uint64_t> graph_bytes_;
  std::uint64_t* digests_ = nullptr;
  std::size_t digest_count_ = 0;
  bool fails_next_ = false;
  std::size_t baseline_free_ = 0;  ///< bytes, when `prepare` began
  mutable std::uint64_t peak_ = 0;
};

}  // namespace

Outcome<std::unique_ptr<Backend>> make_cuda_backend(int device_index) {
  return CudaBackend::open(device_index);
}

}  // namespace capstan::runtime
