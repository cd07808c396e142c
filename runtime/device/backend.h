// The seam between the executor, which knows segments and steps, and a device, which knows memory and ops. A
// backend owns one arena for one plan, issues ops in the order it is told, records runs of ops and replays
// them. It decides nothing. All calls come from one thread. No call throws; errors are diagnostics (RN0xx).
// After an error only tear_down, the destructor and `await_read` of a read begun before it may be called. The
// plan passed to `prepare` was validated by load/plan_reader and outlives the backend.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/outcome.h"
#include "runtime/graph/listing.h"

namespace capstan::runtime {

struct DeviceInfo {
  std::string backend;            ///< "host" | "cuda"
  std::string name;               ///< "NVIDIA H200", or the CPU's model name
  std::uint64_t total_bytes = 0;  ///< memory of the device
  std::uint64_t free_bytes = 0;   ///< when the backend was made; `prepare` refuses a plan that needs more
  std::string driver;             ///< driver and toolkit versions; empty on the host
  /// Issuing returns before the device is done, so that the host can issue ahead of it.
  bool asynchronous = false;
};

/// What a recording holds and cost. Times in seconds.
struct RecordingInfo {
  std::uint64_t nodes = 0;         ///< graph nodes (cuda) or calls (host)
  std::uint64_t edges = 0;         ///< graph edges; nodes - 1 on the host
  double capture_seconds = 0;      ///< from begin_record to the end of capture
  double instantiate_seconds = 0;  ///< making it launchable (0 on the host)
  std::uint64_t bytes = 0;         ///< memory that the recording itself takes, where it is known
  GraphListing listing;            ///< compared with the ops that were issued (RN023)
  bool updated = false;            ///< a recording of the same key took the new parameters
};

struct MemoryUse {
  std::uint64_t arena = 0;  ///< bytes of the arena that are backed by memory now
  std::uint64_t other = 0;  ///< bytes of everything else that the backend allocated and still holds
  std::uint64_t peak = 0;   ///< highest measured total since `prepare` began; the figure that reports compare
  /// In use on the device before `prepare` began, not part of `peak`: the driver's context, code, other
  /// processes. 0 on the host.
  std::uint64_t baseline = 0;
};

class Backend {
 public:
  virtual ~Backend() = default;

  virtual const DeviceInfo& device() const = 0;

  /// Checks that the arena and the workspaces fit (RN020 says needed and free bytes, before anything is
  /// allocated), allocates the arena, makes streams and library handles, resolves operands and picks
  /// algorithms for every op.
  virtual Status prepare(const plan::Plan& plan) = 0;

  /// Fills every buffer that has an `init` (docs/plan-format.md, "Random numbers"); other persistent buffers
  /// get zeros.
  virtual Status initialize() = 0;

  /// Copies host bytes into a buffer; `bytes` has exactly the buffer's size. Ordered after what was issued
  /// before, which still reads the old contents, and before what is issued later; the caller may reuse its
  /// memory on return. Not allowed while recording.
  virtual Status upload(plan::BufferId buffer, std::span<const std::byte> bytes) = 0;
  /// Waits for issued ops, then copies a buffer to the host. Not allowed while recording.
  virtual Status download(plan::BufferId buffer, std::span<std::byte> bytes) = 0;

  static constexpr std::size_t kReadSlots = 8;
  static constexpr std::size_t kReadBytes = 4096;  ///< at most, of one read
  /// Starts to copy buffers (at least one) to memory of the backend: what they hold after everything issued
  /// so far and before anything issued later. Does not wait. An earlier read of the slot that nobody awaited
  /// is lost. Not allowed while recording.
  virtual Status begin_read(std::span<const plan::BufferId> buffers, std::size_t slot) = 0;
  /// Waits for the read last begun in the slot, but for nothing that was issued after it, and gives its
  /// buffers' bytes one after the other; `bytes` has exactly their size. Reports an error that surfaced
  /// meanwhile.
  virtual Status await_read(std::size_t slot, std::span<std::byte> bytes) = 0;

  /// Issues one op: runs it (host), puts it on the stream (cuda), or, while recording, adds it to the
  /// recording without executing it.
  virtual Status run(plan::OpId op) = 0;

  /// Starts a recording under a key that the executor chooses (a segment id, or an id beyond them for
  /// instrumented recordings). A recording with the same key is replaced: where only parameters of its nodes
  /// changed, it is updated instead of made anew. Nothing of it may be running then.
  virtual Status begin_record(std::uint32_t key) = 0;
  virtual Outcome<RecordingInfo> end_record() = 0;
  /// Issues a recording. Asynchronous where the device is.
  virtual Status replay(std::uint32_t key) = 0;
  virtual Status drop_recording(std::uint32_t key) = 0;

  /// Digests for --verify-replay. `reserve_digests` allocates `count` u64 slots outside the arena (0 frees
  /// them). `run_digest` issues, or records, the digest of the outputs of `op` as they are at that point in
  /// the issue order, into a slot; outputs of role workspace are left out, as their contents are the op's own
  /// business. Digest of a list of buffers: see device/digest.h; equal bytes give equal digests everywhere.
  virtual Status reserve_digests(std::size_t count) = 0;
  virtual Status run_digest(plan::OpId op, std::size_t slot) = 0;
  virtual Status read_digests(std::span<std::uint64_t> slots) = 0;

  /// Drill: the next op that is issued fails as a kernel that the device refuses does.
  virtual void fail_next_op() = 0;

  /// Waits for everything issued and reports an error that surfaced meanwhile.
  virtual Status synchronize() = 0;

  /// Seconds that the device took for what was issued between the two calls; the second waits. On the host
  /// the wall clock; on cuda a pair of events, so that host time of issuing is not counted.
  virtual Status start_timer() = 0;
  virtual Outcome<double> stop_timer() = 0;

  virtual MemoryUse memory() const = 0;

  /// Releases one part of plan.teardown ("graphs", "libraries", "streams", "arena"); "graphs" also ends a
  /// recording that is under way. Releasing what is gone already does nothing. The destructor releases the
  /// rest in that order.
  virtual Status tear_down(std::string_view part) = 0;
};

}  // namespace capstan::runtime
