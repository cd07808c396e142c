#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void load_micro_batch(const std::int32_t* batch, const std::int64_t* index,
                                 std::int64_t micro_batches, std::int32_t* tokens, std::int32_t* targets,
                                 std::int64_t sequences, std::int64_t seq_length) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= sequences * seq_length) return;
  const std::int64_t sequence = i / seq_length;
  const std::int64_t position = i % seq_length;
  // The index is device state; a plan that runs more micro-batches than it staged must not read beyond the
  // batch.
  const std::int64_t micro_batch = min(max(*index, static_cast<std::int64_t>(0)), micro_batches - 1);
  const std::int32_t* row = batch + (micro_batch * sequences + sequence) * (seq_length + 1);
  tokens[i] = row[position];
  targets[i] = row[position + 1];
}

__global__ void advance_micro_batch(std::int64_t* micro_batch_index, std::uint64_t* rng_counter) {
  *micro_batch_index += 1;
  *rng_counter += 1;
}

__global__ void advance_step(std::int64_t* step, std::int64_t* micro_batch_index) {
  *step += 1;
  *micro_batch_index = 0;
}

__global__ void learning_rate(LearningRate schedule, const std::int64_t* step, float* out) {
  using Style = LearningRate::Style;
  const double n = static_cast<double>(*step);
  const double warmup = schedule.warmup_steps;
  const double decay = schedule.decay_steps;
  double rate;
  if (warmup > 0.0 && n <= warmup) {
    rate = schedule.init_lr + (schedule.max_lr - schedule.init_lr) * n / warmup;
  } else if (schedule.style == Style::constant) {
    rate = schedule.max_lr;
  } else if (n > decay) {
    rate = schedule.min_lr;
  } else if (schedule.style == Style::inverse_square_root) {
    const double unit = schedule.unit;
    rate = fmax(schedule.min_lr, schedule.max_lr * sqrt(fmax(warmup, unit)) / sqrt(fmax(n, unit)));
  } else {
    // n is in (warmup, decay] here unless both are equal, when the schedule is at its end.
    const double ratio = decay > warmup ? (n - warmup) / (decay - warmup) : 1.0;
    const double share =
        schedule.style == Style::linear ? 1.0 - ratio : 0.5 * (cos(3.14159265358979323846 * ratio) + 1.0);
    rate = schedule.min_lr + share * (schedule.max_lr - schedule.min_lr);
  }
  *out = static_cast<float>(rate);
}

__device__ std::uint64_t mix_word(std::uint64_t position, std::uint32_t word) {
  std::uint64_t z = (position << 32 | word) + 0x9e3779b97f4a7c15ULL * (position + 1);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

// Integer addition is associative, so the order in which blocks finish does not matter.
__global__ void digest(const unsigned char* data, std::uint64_t bytes, std::uint64_t first,
                       std::uint64_t* slot) {
  const std::uint64_t words = (bytes + 3) / 4;
  std::uint64_t sum = 0;
  for (std::uint64_t i = static_cast<std::uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < words;
       i += static_cast<std::uint64_t>(gridDim.x) * blockDim.x) {
    std::uint32_t word = 0;
    if (4 * i + 4 <= bytes) {
      word = reinterpret_cast<const std::uint32_t*>(data)[i];
    } else {
      for (std::uint64_t k = 4 * i; k < bytes; ++k)
        word |= static_cast<std::uint32_t>(data[k]) << (8 * (k - 4 * i));
    }
    sum += mix_word(first + i, word);
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffffU, sum, offset);
  if (threadIdx.x % kWarp == 0) atomicAdd(reinterpret_cast<unsigned long long*>(slot), sum);
}

}  // namespace

cudaError_t probe_kernels() {
  cudaFuncAttributes attributes = {};
  return cudaFuncGetAttributes(&attributes, advance_step);
}

void launch_refused_kernel(cudaStream_t stream) {
  constexpr unsigned kTooManyThreads = 1U << 16;
  advance_step<<<1, kTooManyThreads, 0, stream>>>(nullptr, nullptr);
}

void launch_load_micro_batch(cudaStream_t stream, const std::int32_t* batch, const std::int64_t* index,
                             std::int64_t micro_batches, std::int32_t* tokens, std::int32_t* targets,
                             std::int64_t sequences, std::int64_t seq_length) {
  const std::int64_t count = sequences * seq_length;
  load_micro_batch<<<static_cast<unsigned>((count + kThreads - 1) / kThreads), kThreads, 0, stream>>>(
      batch, index, micro_batches, tokens, targets, sequences, seq_length);
}

void launch_advance_micro_batch(cudaStream_t stream, std::int64_t* micro_batch_index,
                                std::uint64_t* rng_counter) {
  advance_micro_batch<<<1, 1, 0, stream>>>(micro_batch_index, rng_counter);
}

void launch_advance_step(cudaStream_t stream, std::int64_t* step, std::int64_t* micro_batch_index) {
  advance_step<<<1, 1, 0, stream>>>(step, micro_batch_index);
}

void launch_learning_rate(cudaStream_t stream, const LearningRate& schedule, const std::int64_t* step,
                          float* out) {
  learning_rate<<<1, 1, 0, stream>>>(schedule, step, out);
}

void launch_digest(cudaStream_t stream, const void* data, std::uint64_t bytes, std::uint64_t first_word,
                   std::uint64_t* slot) {
  const std::uint64_t words = (bytes + 3) / 4;
  const std::uint64_t blocks = (words + kThreads - 1) / kThreads;
  digest<<<static_cast<unsigned>(blocks < 1024 ? blocks : 1024), kThreads, 0, stream>>>(
      static_cast<const unsigned char*>(data), bytes, first_word, slot);
}

}  // namespace capstan::runtime::cuda
