#include <type_traits>

#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 512;

// bf16 logits carry 8 bits: the fast exponential's relative error of about 1e-6 is far below them.
template <typename T>
__device__ __forceinline__ float exponential(float x) {
  return sizeof(T) == 2 ? __expf(x) : expf(x);
}

// Running log-sum-exp: the largest value so far and the sum of exponentials relative to it.
struct Running {
  float largest = -INFINITY;
  float sum = 0.0F;
};

__device__ __forceinline__ Running merge(Running a, Running b) {
  const float largest = fmaxf(a.largest, b.largest);
  // Both empty: nothing to scale, and inf - inf must not make a NaN.
  if (largest == -INFINITY) return {largest, a.sum + b.sum};
  return {largest, a.sum * expf(a.largest - largest) + b.sum * expf(b.largest - largest)};
}

// The row's log-sum-exp, for thread 0 of the block; the row is read once, and kept in `kept` where that is
// given. Columns beyond `vocab` are padding and are skipped.
template <typename T, int N>
__device__ __forceinline__ float log_sum_exp(const T* from, int vocab, Running* warps, T* kept) {
  Running mine;
  for (int i = static_cast<int>(threadIdx.x) * N; i < vocab; i += kThreads * N) {
    float value[N];
    load<N>(from + i, value);
    if (kept != nullptr) store<N>(kept + i, value);
    float largest = mine.largest;
#pragma unroll
    for (int k = 0; k < N; ++k) {
      if (i + k >= vocab) value[k] = -INFINITY;
      largest = fmaxf(largest, value[k]);
    }
    if (largest == -INFINITY) {
      // Nothing finite yet. fmaxf passes over NaN, so it is kept by hand; below, the exponential carries it.
#pragma unroll
      for (int k = 0; k < N; ++k) {
        if (isnan(value[k])) mine.sum = value[k];
      }
      continue;
    }
    float sum = mine.sum * exponential<T>(mine.largest - largest);
#pragma unroll
    for (int k = 0; k < N; ++k) sum += exponential<T>(value[k] - largest);
    mine = {largest, sum};
  }
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    const Running other{__shfl_xor_sync(0xffffffffU, mine.largest, offset),
                        __shfl_xor_sync(0xffffffffU, mine.sum, offset)};
    mine = merge(mine, other);
  }
  if (threadIdx.x % kWarp == 0) warps[threadIdx.x / kWarp] = mine;
  __syncthreads();
  if (threadIdx.x != 0) return 0.0F;
  for (int w = 1; w < kThreads / kWarp; ++w) mine = merge(mine, warps[w]);
  return mine.largest + logf(mine.sum);
}

// One block per row.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    cross_entropy(const T* logits, const std::int32_t* targets, float* losses, float* lse_out,
                  std::int64_t columns, int vocab) {
  __shared__ Running warps[kThreads / kWarp];
  const std::int64_t row = blockIdx.x;
  const T* from = logits + row * columns;
  const float lse = log_sum_exp<T, N>(from, vocab, warps, nullptr);
  if (threadIdx.x != 0) return;
  const std::int32_t target = targets[row];
  const bool known = target >= 0 && target < vocab;
  lse_out[row] = lse;
  losses[row] = known ? lse - widen(from[target]) : NAN;
}

// Writes the row's gradient; `from` may be `to`.
template <typename T, int N>
__device__ __forceinline__ void write_gradient(const T* from, T* to, float row_lse, int target,
                                               std::int64_t columns, int vocab, float scale) {
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * N; i < columns; i += kThreads * N) {
    float value[N] = {};
    if (i < vocab) load<N>(from + i, value);
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const int column = static_cast<int>(i) + k;
      const float probability = exponential<T>(value[k] - row_lse);
      value[k] = column < vocab ? scale * (probability - (column == target ? 1.0F : 0.0F)) : 0.0F;
    }
    store<N>(to + i, value);
  }
}

// One block per row: the loss, then the gradient over the logits. With kKeeps the row waits in shared memory
// in between, so that it is read once.
template <typename T, int N, bool kKeeps>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_in_place(T* logits, const std::int32_t* targets, float* losses, std::int64_t columns,
                           int vocab, float scale) {
  extern __shared__ __align__(16) unsigned char row_memory[];
  __shared__ Running warps[kThreads / kWarp];
  __shared__ float row_lse;
  const std::int64_t row = blockIdx.x;
  T* const at = logits + row * columns;
  T* const kept = kKeeps ? reinterpret_cast<T*>(row_memory) : nullptr;
  const float lse = log_sum_exp<T, N>(at, vocab, warps, kept);
  const std::int32_t target = targets[row];
  if (threadIdx.x == 0) {
    const bool known = target >= 0 && target < vocab;
    losses[row] = known ? lse - widen(at[target]) : NAN;
    row_lse = lse;
  }
  __syncthreads();
  write_gradient<T, N>(kKeeps ? kept : at, at, row_lse, target, columns, vocab, scale);
}

template <typename T, int N>
__global__ void __launch_bounds__(kThreads)
    cross_entropy_backward(const T* logits, const std::int32_t* targets, const float* lse, T* dlogits,
                           std::int64_t columns, int vocab, float scale) {
  const std::int64_t row = blockIdx.x;
  write_gradient<T, N>(logits + row * columns, dlogits + row * columns, lse[row], targets[row], columns,
                       vocab, scale);
}

// One block: every thread sums its rows in order, then the block in a fixed tree.
__global__ void __launch_bounds__(1024)
    accumulate_loss(const float* losses, float* loss, std::int32_t* nonfinite, std::int64_t rows,
                    float scale) {
  __shared__ float scratch[kWarp];
  float sum = 0.0F;
  for (std::int64_t i = threadIdx.x; i < rows; i += 1024) sum += losses[i];
  sum = reduce_block(sum, Sum(), scratch);
  if (threadIdx.x != 0) return;
  *loss += scale * sum;
  if (!isfinite(sum)) *nonfinite |= 1;
}

template <typename T>
void forward(cudaStream_t stream, const T* logits, const std::int32_t* targets, float* losses, float* lse,
             std::int64_t rows, std::int64_t columns, int vocab) {
  const auto blocks = static_cast<unsigned>(rows);
  if (columns % kPack<T> == 0) {
    cross_entropy<T, kPack<T>><<<blocks, kThreads, 0, stream>>>(logits, targets, losses, lse, columns, vocab);
  } else {
    cross_entropy<T, 1><<<blocks, kThreads, 0, stream>>>(logits, targets, losses, lse, columns, vocab);
  }
}

template <typename T>
void backward(cudaStream_t stream, const T* logits, const std::int32_t* targets, const float* lse, T* dlogits,
              std::int64_t rows, std::int64_t columns, int vocab, float scale) {
  const auto blocks = static_cast<unsigned>(rows);
  if (columns % kPack<T> == 0) {
    cross_entropy_backward<T, kPack<T>>
        <<<blocks, kThreads, 0, stream>>>(logits, targets, lse, dlogits, columns, vocab, scale);
  } else {
    cross_entropy_backward<T, 1>
        <<<blocks, kThreads, 0, stream>>>(logits, targets, lse, dlogits, columns, vocab, scale);
  }
}

// Two blocks of a multiprocessor share its 227 KiB.
constexpr std::int64_t kMostRowBytes = 112 << 10;
// With what the kernel needs besides, this much every kernel may take unasked.
constexpr std::int64_t kUnaskedRowBytes = 32 << 10;

template <typename T>
std::int64_t row_bytes(std::int64_t columns) {
  return columns * static_cast<std::int64_t>(sizeof(T));
}

template <typename T, int N>
cudaError_t allow_kept_rows() {
  return cudaFuncSetAttribute(cross_entropy_in_place<T, N, true>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                              static_cast<int>(kMostRowBytes));
}

template <typename T>
cudaError_t prepare_in_place(std::int64_t columns) {
  const std::int64_t bytes = row_bytes<T>(columns);
  if (bytes <= kUnaskedRowBytes || bytes > kMostRowBytes) return cudaSuccess;
  return columns % kPack<T> == 0 ? allow_kept_rows<T, kPack<T>>() : allow_kept_rows<T, 1>();
}

template <typename T, int N>
void in_place(cudaStream_t stream, T* logits, const std::int32_t* targets, float* losses, std::int64_t rows,
              std::int64_t columns, int vocab, float scale) {
  const auto blocks = static_cast<unsigned>(rows);
  const std::int64_t bytes = row_bytes<T>(columns);
  if (bytes > kMostRowBytes) {
    cross_entropy_in_place<T, N, false>
        <<<blocks, kThreads, 0, stream>>>(logits, targets, losses, columns, vocab, scale);
    return;
  }
  cross_entropy_in_place<T, N, true><<<blocks, kThreads, static_cast<std::size_t>(bytes), stream>>>(
      logits, targets, losses, columns, vocab, scale);
}

}  // namespace

cudaError_t prepare_cross_entropy_in_place(Storage storage, std::int64_t columns) {
  return storage == Storage::bf16 ? prepare_in_place<bf16>(columns) : prepare_in_place<float>(columns);
}

void launch_cross_entropy_in_place(cudaStream_t stream, Floats logits, const std::int32_t* targets,
                                   float* losses, std::int64_t rows, std::int64_t columns, std::int64_t vocab,
                                   float scale) {
  const auto go = [&](auto* data) {
    using T = std::remove_pointer_t<decltype(data)>;
    if (columns % kPack<T> == 0) {
      in_place<T, kPack<T>>(stream, data, targets, losses, rows, columns, static_cast<int>(vocab), scale);
    } else {
      in_place<T, 1>(stream, data, targets, losses, rows, columns, static_cast<int>(vocab), scale);
    }
  };
  logits.storage == Storage::bf16 ? go(static_cast<bf16*>(logits.data))
                                  : go(static_cast<float*>(logits.data));
}

void launch_cross_entropy(cudaStream_t stream, Floats logits, const std::int32_t* targets, float* losses,
                          float* lse, std::int64_t rows, std::int64_t columns, std::int64_t vocab) {
  if (logits.storage == Storage::bf16) {
    forward(stream, static_cast<const bf16*>(logits.data), targets, losses, lse, rows, columns,
            static_cast<int>(vocab));
  } else {
    forward(stream, static_cast<const float*>(logits.data), targets, losses, lse, rows, columns,
            static_cast<int>(vocab));
  }
}

void launch_cross_entropy_backward(cudaStream_t stream, Floats logits, const std::int32_t* targets,
                                   const float* lse, Floats dlogits, std::int64_t rows, std::int64_t columns,
                                   std::int64_t vocab, float scale) {
  if (logits.storage == Storage::bf16) {
    backward(stream, static_cast<const bf16*>(logits.data), targets, lse, static_cast<bf16*>(dlogits.data),
             rows, columns, static_cast<int>(vocab), scale);
  } else {
    backward(stream, static_cast<const float*>(logits.data), targets, lse, static_cast<float*>(dlogits.data),
             rows, columns, static_cast<int>(vocab), scale);
  }
}

void launch_accumulate_loss(cudaStream_t stream, const float* losses, float* loss, std::int32_t* nonfinite,
                            std::int64_t rows, float scale) {
  accumulate_loss<<<1, 1024, 0, stream>>>(losses, loss, nonfinite, rows, scale);
}

}  // namespace capstan::runtime::cuda
