// The execution plan: plain data, the whole policy of a run. Made by compiler/plan from a checked config,
// written as plan.json, read by the runtime, which decides nothing. docs/plan-format.md is its specification:
// file format, op semantics, layouts. Everything here is static: sizes, addresses, order, capture segments,
// random-number offsets.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace capstan::plan {

/// Version of plan.json. A reader refuses any other.
inline constexpr int kFormatVersion = 1;
/// Alignment of every buffer in the arena, in bytes.
inline constexpr std::uint64_t kBufferAlignment = 256;
/// Partial maxima of one fp8 quantisation, f32 each.
inline constexpr std::int64_t kLargestPartials = 1024;
/// Bytes that the matrix-product library may use for one product; more brings nothing on the devices that
/// were measured.
inline constexpr std::int64_t kProductWorkspaceBytes = std::int64_t{64} << 20;

// Largest sizes of a model: far above any of today, and low enough that no product of them overflows. The
// compiler refuses configs beyond them, the runtime plans.
inline constexpr std::int64_t kMostLayers = 10'000, kMostWidth = 1 << 20, kMostHeads = 1 << 14,
                              kMostVocabulary = 1 << 24, kMostPositions = 1 << 22, kMostBatch = 1 << 20;
/// Padding rounds a vocabulary up to a multiple of at most this.
inline constexpr std::int64_t kMostVocabularyMultiple = 1 << 16;

/// Ops of one graph, those of every micro-batch counted: a graph of a whole iteration holds them all. At
/// about a kilobyte a node, on the host and on the device, a larger one is no gain any more.
inline constexpr std::int64_t kMostLaunchesOfAGraph = std::int64_t{1} << 20;
/// Segments that a step issues, those of each micro-batch counted apart: the runtime lists them.
inline constexpr std::int64_t kMostIssuesOfAStep = std::int64_t{1} << 24;

enum class DType : std::uint8_t {
  f32,
  f64,
  bf16,
  f16,
  i32,
  i64,
  u8,
  u64,
  f8e4m3,  ///< 4 exponent and 3 fraction bits, largest 448, no infinity
  f8e5m2   ///< 5 exponent and 2 fraction bits, largest 57344
};
std::uint64_t size_of(DType dtype);   ///< bytes per element
const char* dtype_name(DType dtype);  ///< "bf16"

enum class OpKind : std::uint8_t {
#define CAPSTAN_OP(name) name,
#include "compiler/plan/op_kinds.def"
#undef CAPSTAN_OP
};
const char* op_kind_name(OpKind kind);

enum class Role : std::uint8_t {
  parameter,  ///< what the forward pass reads; persistent
  master,     ///< fp32 copy of a parameter that is stored in a narrower dtype; persistent
  gradient,   ///< accumulated over the micro-batches of a step; persistent
  moment1,
  moment2,     ///< AdamW state; persistent
  input,       ///< staged batch, written by the host between steps; persistent
  scalar,      ///< step, learning rate, loss, norms, flags, counters; persistent, device-resident
  activation,  ///< lives from its first write to its last read within one micro-batch
  workspace    ///< scratch of one op
};
const char* role_name(Role role);

using BufferId = std::uint32_t;
using OpId = std::uint32_t;

/// How a persistent buffer gets its first contents.
struct Init {
  enum class Kind : std::uint8_t { none, zeros, ones, normal } kind = Kind::none;
  double stddev = 0.0;       ///< for normal (mean 0)
  std::uint64_t stream = 0;  ///< for normal: Philox stream number; the plan's seed is the key
};

struct Buffer {
  BufferId id = 0;
  std::string name;  ///< unique: "layer.3.attn.qkv.weight", "layer.3.attn.qkv.weight.grad"
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< row-major
  Role role = Role::activation;
  Init init;
  std::uint64_t offset = 0;  ///< bytes from the arena's start; multiple of kBufferAlignment
  std::uint64_t bytes() const;
  std::int64_t elements() const;
};

using AttributeValue = std::variant<bool, std::int64_t, double, std::string>;

enum class Phase : std::uint8_t { forward, recompute, backward, optimizer, bookkeeping };
const char* phase_name(Phase phase);
/// When an op runs within a training step.
enum class Stage : std::uint8_t {
  step_begin,   ///< once, before the first micro-batch
  micro_batch,  ///< once per micro-batch
  step_end      ///< once, after the last micro-batch
};
const char* stage_name(Stage stage);

struct Op {
  OpId id = 0;  ///< position in Plan::ops
  OpKind kind = OpKind::zero;
  Phase phase = Phase::forward;
  Stage stage = Stage::micro_batch;
  std::vector<BufferId> inputs;   ///< read; order as docs/plan-format.md says
  std::vector<BufferId> outputs;  ///< written (a buffer that is updated stands in both lists)
  std::vector<std::pair<std::string, AttributeValue>> attributes;  ///< sorted by name
  std::string module;       ///< "embedding", "attn", "mlp", "final_norm", "head", "optimizer", "step"
  std::int32_t layer = -1;  ///< -1: outside the layers
  std::string key;          ///< config key that put the op here ("model.recompute_granularity"); may be empty

  const AttributeValue* find(std::string_view name) const;
  std::int64_t integer(
      std::string_view name) const;  ///< throws std::out_of_range / bad_variant_access when absent
  double floating(std::string_view name) const;
  bool boolean(std::string_view name) const;
  const std::string& text(std::string_view name) const;
};

enum class SegmentMode : std::uint8_t { eager, graph };
const char* segment_mode_name(SegmentMode mode);

/// A contiguous run of ops that is issued together. Segments partition the op list in order. The segments of
/// stage micro_batch run as a group once per micro-batch; a segment with `whole_iteration` holds every
/// micro-batch of the step, unrolled when captured, and may span stages.
struct Segment {
  std::uint32_t id = 0;
  SegmentMode mode = SegmentMode::eager;
  std::string scope;   ///< "attn", "mlp", "layer", "full_iteration", "optimizer", or "" for eager
  std::string reason;  ///< why it is captured or is not: one clause, with the config key
  OpId first_op = 0;
  OpId end_op = 0;  ///< one past the last
  bool whole_iteration = false;
  std::int32_t layer = -1;
  Phase phase = Phase::forward;
};

struct Dims {
  std::int64_t layers = 0, hidden = 0, heads = 0, kv_heads = 0, head_dim = 0, ffn_hidden = 0, vocab = 0,
               padded_vocab = 0;
  std::int64_t seq_length = 0, micro_batch = 0, micro_batches = 1;  ///< micro_batches: per step and rank
  std::int64_t tokens() const { return seq_length * micro_batch; }  ///< per micro-batch
};

struct Schedule {
  std::int64_t train_steps = 0;
  std::int64_t warmup_steps = 3;    ///< eager steps before capture (model.cuda_graph_warmup_steps)
  std::string graph_impl = "none";  ///< none | local | transformer_engine | full_iteration, as configured
  std::int64_t save_every = 0;      ///< steps; 0: only at the end
  std::int64_t log_every = 1;
};

/// Data source, as configured; the runtime opens it.
struct Data {
  /// "text" (byte-level tokens), "token_shards" (llm.c), "megatron_indexed", "random"; "none": nothing to
  /// train on yet
  std::string kind;
  std::string path;
  std::uint64_t seed = 0;  ///< order of samples
};

/// A check that the runtime makes after a step by reading a device scalar.
struct Check {
  std::string kind;   ///< "nonfinite_loss", "nonfinite_gradient"
  BufferId flag = 0;  ///< i32, non-zero when it fired
  std::string key;    ///< config key that asked for it
  bool fatal = true;
};

struct MemorySummary {  ///< bytes; filled by pass_place_buffers
  std::uint64_t arena = 0, parameters = 0, masters = 0, gradients = 0, optimizer = 0, activations_peak = 0,
                workspaces_peak = 0, inputs_and_scalars = 0;
};

struct Plan {
  int format_version = kFormatVersion;
  std::string producer;          ///< "capstan 0.1.0"
  std::string config_name;       ///< file name without folder
  std::string config_digest;     ///< of the effective config
  std::string backend = "auto";  ///< auto | host | cuda (execute.backend)
  bool deterministic = true;
  Dims dims;
  Schedule schedule;
  Data data;
  std::uint64_t seed = 0;         ///< rng.seed: key of every Philox stream
  std::vector<Buffer> buffers;    ///< by id
  std::vector<Op> ops;            ///< by id, in issue order
  std::vector<Segment> segments;  ///< in issue order
  std::vector<Check> checks;
  std::vector<std::string> teardown;  ///< in order: "graphs", "libraries", "streams", "arena"
  MemorySummary memory;
  double model_flops_per_step =
      0;  ///< 6 per matmul weight and token, causal attention counted half, no recompute

  /// The buffer with this name; requires it to exist (see find_buffer).
  const Buffer& buffer(std::string_view name) const;
  const Buffer* find_buffer(std::string_view name) const;
};

/// Names of the scalar and input buffers that every plan has.
namespace names {
inline constexpr const char* kBatchTokens = "batch_tokens";  ///< i32 [micro_batches, micro_batch, seq+1]
inline constexpr const char* kTokens = "tokens";             ///< i32 [micro_batch, seq]
inline constexpr const char* kTargets = "targets";           ///< i32 [micro_batch, seq]
inline constexpr const char* kStep = "step";                 ///< i64 [1], steps done
inline constexpr const char* kMicroBatchIndex = "micro_batch_index";  ///< i64 [1]
inline constexpr const char* kRngCounter = "rng_counter";  ///< u64 [1], micro-batches done since the start
inline constexpr const char* kLearningRate = "learning_rate";  ///< f32 [1]
inline constexpr const char* kLoss = "loss";                   ///< f32 [1], mean over the step's tokens
inline constexpr const char* kGradNorm = "grad_norm";          ///< f32 [1], before clipping
inline constexpr const char* kNonfinite = "nonfinite";         ///< i32 [1], bit 0 loss, bit 1 gradient
}  // namespace names

}  // namespace capstan::plan
