// Launch functions of the own kernels: raw device pointers in, work on a stream out. Nothing here allocates,
// waits or reads device memory on the host, so every function may be called while a stream is being captured.
// Launch errors are left for cudaGetLastError. docs/plan-format.md defines shapes and arithmetic of every op;
// T is tokens of a micro-batch.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "compiler/plan/plan.h"

namespace capstan::runtime::cuda {

enum class Storage : std::uint8_t { f32, bf16, f8e4m3, f8e5m2 };

/// Device memory of floating-point elements with its storage type.
struct Floats {
  void* data = nullptr;
  Storage storage = Storage::f32;
};

/// Dropout of one op: `counter` points at the u64 rng_counter in device memory. p == 0 draws nothing.
struct Dropout {
  std::uint64_t seed = 0;
  std::uint32_t offset = 0;
  double p = 0.0;
  const std::uint64_t* counter = nullptr;
  bool active() const { return p > 0.0; }
};

// step.cu: bookkeeping
/// cudaErrorNoKernelImageForDevice and the like when the build has no code for the current device.
cudaError_t probe_kernels();
/// A launch with more threads than any device takes, for drills.
void launch_refused_kernel(cudaStream_t stream);
void launch_load_micro_batch(cudaStream_t stream, const std::int32_t* batch, const std::int64_t* index,
                             std::int64_t micro_batches, std::int32_t* tokens, std::int32_t* targets,
                             std::int64_t sequences, std::int64_t seq_length);
void launch_advance_micro_batch(cudaStream_t stream, std::int64_t* micro_batch_index,
                                std::uint64_t* rng_counter);
void launch_advance_step(cudaStream_t stream, std::int64_t* step, std::int64_t* micro_batch_index);
struct LearningRate {
  enum class Style : std::uint8_t { constant, linear, cosine, inverse_square_root } style = Style::constant;
  double max_lr = 0, min_lr = 0, init_lr = 0;
  double warmup_steps = 0, decay_steps = 0, unit = 0;
};
void launch_learning_rate(cudaStream_t stream, const LearningRate& schedule, const std::int64_t* step,
                          float* out);
/// Adds the digest (device/digest.h) of `bytes` bytes to *slot; 4-byte aligned. The caller zeroes the slot
/// first.
void launch_digest(cudaStream_t stream, const void* data, std::uint64_t bytes, std::uint64_t first_word,
                   std::uint64_t* slot);

// init.cu: first contents
void launch_fill(cudaStream_t stream, Floats out, std::int64_t count, float value);
/// Normals of docs/plan-format.md ("Random numbers"), rounded once to the storage.
void launch_normal(cudaStream_t stream, Floats out, std::int64_t count, std::uint64_t seed,
                   std::uint64_t rng_stream, double stddev);

// embedding.cu
void launch_embedding(cudaStream_t stream, const std::int32_t* tokens, Floats table, Floats position_table,
                      Floats out, std::int64_t count, std::int64_t vocab, std::int64_t hidden,
                      std::int64_t seq_length);
void launch_embedding_backward(cudaStream_t stream, Floats dx, const std::int32_t* tokens, Floats dtable,
                               Floats dposition, std::int64_t count, std::int64_t vocab, std::int64_t hidden,
                               std::int64_t seq_length);

// norm.cu
struct NormForward {
  Floats x, weight, bias, y;  ///< bias.data null: RMSNorm
  float* mean = nullptr;      ///< null: RMSNorm
  float* rstd = nullptr;
  std::int64_t rows = 0, hidden = 0;
  float epsilon = 0;
  /// When set, x is first replaced by x + dropout(addend), which is also written to `sum` (fused residual
  /// add).
  Floats addend, sum;
};
void launch_norm(cudaStream_t stream, const NormForward& norm);

// norm_backward.cu
struct NormBackward {
  Floats dy, x, weight, dweight, dbias, dx;  ///< dbias.data null: RMSNorm
  const float* mean = nullptr;
  const float* rstd = nullptr;
  float* partial = nullptr;
  std::int64_t partial_floats = 0;
  std::int64_t rows = 0, hidden = 0;
  bool accumulate_dx = false;
};
void launch_norm_backward(cudaStream_t stream, const NormBackward& norm);

// rope.cu
struct Rope {
  Floats qkv;
  std::int64_t rows = 0, seq_length = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 0, rotary_dim = 0;
  double base = 10000.0;
  bool interleaved = false, inverse = false;
  const void* angles = nullptr;  ///< of launch_rope_angles
};
/// Fills cosine and sine, as pairs of f32, of every position and pair: [seq_length][rotary_dim / 2].
void launch_rope_angles(cudaStream_t stream, const Rope& rope, void* angles);
void launch_rope(cudaStream_t stream, const Rope& rope);

// elementwise.cu
void launch_swiglu(cudaStream_t stream, Floats gate_up, Floats out, std::int64_t rows, std::int64_t ffn);
void launch_swiglu_backward(cudaStream_t stream, Floats dout, Floats gate_up, Floats dgate_up,
                            std::int64_t rows, std::int64_t ffn);
void launch_gelu(cudaStream_t stream, Floats x, Floats y, std::int64_t count, bool tanh_form);
void launch_gelu_backward(cudaStream_t stream, Floats dy, Floats x, Floats dx, std::int64_t count,
                          bool tanh_form);
void launch_add(cudaStream_t stream, Floats a, Floats b, Floats y, std::int64_t count);
/// y = dropout(x), or residual + dropout(x) when residual.data is set.
void launch_dropout(cudaStream_t stream, Floats x, Floats residual, Floats y, std::int64_t count,
                    const Dropout& dropout);

// cross_entropy.cu
void launch_cross_entropy(cudaStream_t stream, Floats logits, const std::int32_t* targets, float* losses,
                          float* lse, std::int64_t rows, std::int64_t columns, std::int64_t vocab);
void launch_cross_entropy_backward(cudaStream_t stream, Floats logits, const std::int32_t* targets,
                                   const float* lse, Floats dlogits, std::int64_t rows, std::int64_t columns,
                                   std::int64_t vocab, float scale);
/// Losses, and scale times their gradients in the place of the logits, which are read once where a row fits
/// shared memory. Rows of this width must have been prepared.
void launch_cross_entropy_in_place(cudaStream_t stream, Floats logits, const std::int32_t* targets,
                                   float* losses, std::int64_t rows, std::int64_t columns, std::int64_t vocab,
                                   float scale);
/// Lets the kernel take the shared memory that a row of `columns` needs. Not while a stream is being
/// captured.
cudaError_t prepare_cross_entropy_in_place(Storage storage, std::int64_t columns);
void launch_accumulate_loss(cudaStream_t stream, const float* losses, float* loss, std::int32_t* nonfinite,
                            std::int64_t rows, float scale);

// quantize.cu
struct QuantizeFp8 {
  Floats x;  ///< [rows, columns], both multiples of 16
  Storage format = Storage::f8e4m3;
  void* rows_out = nullptr;     ///< [rows, columns]
  void* columns_out = nullptr;  ///< [columns, rows]
  float* scale = nullptr;
  float* partial = nullptr;  ///< plan::kLargestPartials floats
  std::int64_t rows = 0, columns = 0;
};
void launch_quantize_fp8(cudaStream_t stream, const QuantizeFp8& quantize);

// reduce.cu
/// `tickets` (bias_backward_tickets of them) are zero before the first launch and are left so by every
/// launch.
std::int64_t bias_backward_tickets(std::int64_t columns);
void launch_bias_backward(cudaStream_t stream, Floats dy, Floats dbias, float* partial,
                          std::int64_t partial_floats, unsigned* tickets, std::int64_t rows,
                          std::int64_t columns);
void launch_check_finite(cudaStream_t stream, Floats x, std::int64_t count, std::int32_t* nonfinite, int bit);

// optimizer.cu: one launch over all tensors
struct OptimizerTensor {  ///< in device memory, made once at load
  void* parameter = nullptr;
  const void* gradient = nullptr;
  float* moment1 = nullptr;
  float* moment2 = nullptr;
  float* master = nullptr;  ///< null: the parameter is f32 and is its own master
  std::int64_t count = 0;
  Storage parameter_storage = Storage::f32, gradient_storage = Storage::f32;
};
struct TensorChunk {  ///< `kChunkElements` elements of one tensor, less at its end
  std::int32_t tensor = 0;
  std::int32_t chunk = 0;
};
inline constexpr std::int64_t kChunkElements = 8192;
struct AdamW {
  double beta1 = 0, beta2 = 0,
         clip_grad = 0;  ///< f64: bias correction and clipping are made in it once per chunk
  float epsilon = 0, weight_decay = 0;
};
void launch_adamw(cudaStream_t stream, const OptimizerTensor* tensors, const TensorChunk* chunks,
                  std::int64_t chunk_count, const AdamW& adamw, const float* learning_rate,
                  const std::int64_t* step, const float* grad_norm, const std::int32_t* nonfinite);
/// `partial` holds at least kGradNormBlocks floats.
inline constexpr int kGradNormBlocks = 1024;
void launch_grad_norm(cudaStream_t stream, const OptimizerTensor* tensors, const TensorChunk* chunks,
                      std::int64_t chunk_count, float* partial, std::int64_t partial_floats, float* grad_norm,
                      std::int32_t* nonfinite);

// attention*.cu
struct Attention {
  Floats qkv;
  Floats out;            ///< [T, heads * head_dim]
  float* lse = nullptr;  ///< [batch, heads, seq_length]
  std::int64_t batch = 0, seq_length = 0, heads = 0, kv_heads = 0, head_dim = 0;
  float scale = 1.0F;
  bool causal = true;
  Dropout dropout;
};
struct AttentionBackward {
  Attention forward;  ///< out and lse as the forward pass left them
  Floats dout;
  Floats dqkv;
  float* delta = nullptr;  ///< [batch, heads, seq_length]
};
/// Any shape and storage, plain arithmetic on the CUDA cores.
void launch_attention_plain(cudaStream_t stream, const Attention& attention);
void launch_attention_backward_plain(cudaStream_t stream, const AttentionBackward& attention);
/// Tensor-core kernels: bf16, head_dim 32, 64, 96 or 128.
bool attention_tensor_core_supports(const Attention& attention);
void launch_attention_tensor_core(cudaStream_t stream, const Attention& attention);
void launch_attention_backward_tensor_core(cudaStream_t stream, const AttentionBackward& attention);
/// delta = row sums of do * o.
void launch_attention_delta(cudaStream_t stream, const AttentionBackward& attention);

}  // namespace capstan::runtime::cuda
