#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

struct Operands {
  AnyFloat weight, bias;
  float* mean;
  float* rstd;
  std::int64_t rows;
  int hidden;
  float epsilon;
};

// Sum over the threads that share a row: a warp (32) or the block.
template <int kRowThreads>
__device__ __forceinline__ float row_sum(float value, float* scratch) {
  if constexpr (kRowThreads == kWarp) {
    return reduce_warp(value, Sum());
  } else {
    return reduce_block(value, Sum(), scratch);
  }
}

// A row lives in registers between the statistics and the output, so x is read once. kRowThreads threads
// share a row; each holds up to kPacks packs of N elements. kMean: LayerNorm, otherwise RMSNorm. kAdd: x is x
// + addend first.
template <typename T, int N, int kRowThreads, int kPacks, bool kMean, bool kAdd>
__global__ void __launch_bounds__(256) norm_row(const T* x, const T* addend, T* sum_out, T* y, Operands op) {
  __shared__ float scratch[kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * (256 / kRowThreads) +
                           static_cast<int>(threadIdx.x) / kRowThreads;
  if (row >= op.rows) return;  // whole warps only: with one row per block the grid has no surplus
  const std::int64_t base = row * op.hidden;
  float value[kPacks][N];
  float sum = 0.0F;
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int column = (lane + p * kRowThreads) * N;
    if (column < op.hidden) {
      load<N>(x + base + column, value[p]);
      if constexpr (kAdd) {
        float more[N];
        load<N>(addend + base + column, more);
        // The sum is rounded to its storage before it is normalized, as if it had been a step of its own.
#pragma unroll
        for (int k = 0; k < N; ++k) value[p][k] = widen(narrow<T>(value[p][k] + more[k]));
        store<N>(sum_out + base + column, value[p]);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) sum += kMean ? value[p][k] : value[p][k] * value[p][k];
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) value[p][k] = 0.0F;
    }
  }
  sum = row_sum<kRowThreads>(sum, scratch);
  float mean = 0.0F;
  if constexpr (kMean) {
    mean = sum / static_cast<float>(op.hidden);
    sum = 0.0F;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      if ((lane + p * kRowThreads) * N < op.hidden) {
#pragma unroll
        for (int k = 0; k < N; ++k) sum += (value[p][k] - mean) * (value[p][k] - mean);
      }
    }
    sum = row_sum<kRowThreads>(sum, scratch);
  }
  const float rstd = rsqrtf(sum / static_cast<float>(op.hidden) + op.epsilon);
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int column = (lane + p * kRowThreads) * N;
    if (column < op.hidden) {
      float weight[N];
      op.weight.load<N>(column, weight);
#pragma unroll
      for (int k = 0; k < N; ++k) value[p][k] = (value[p][k] - mean) * rstd * weight[k];
      if constexpr (kMean) {
        float bias[N];
        op.bias.load<N>(column, bias);
#pragma unroll
        for (int k = 0; k < N; ++k) value[p][k] += bias[k];
      }
      store<N>(y + base + column, value[p]);
    }
  }
  if (lane == 0) {
    op.rstd[row] = rstd;
    if constexpr (kMean) op.mean[row] = mean;
  }
}

// Rows of any length and alignment: reads x again for every pass. One block a row.
template <typename T, bool kMean, bool kAdd>
__global__ void __launch_bounds__(256) norm_any(const T* x, const T* addend, T* sum_out, T* y, Operands op) {
  __shared__ float scratch[kWarp];
  const std::int64_t row = blockIdx.x;
  const std::int64_t base = row * op.hidden;
  float sum = 0.0F;
  for (int i = threadIdx.x; i < op.hidden; i += 256) {
    float value = widen(x[base + i]);
    if constexpr (kAdd) {
      value = widen(narrow<T>(value + widen(addend[base + i])));
      sum_out[base + i] = narrow<T>(value);
    }
    sum += kMean ? value : value * value;
  }
  const T* source = kAdd ? sum_out : x;
  sum = reduce_block(sum, Sum(), scratch);
  float mean = 0.0F;
  if constexpr (kMean) {
    mean = sum / static_cast<float>(op.hidden);
    sum = 0.0F;
    for (int i = threadIdx.x; i < op.hidden; i += 256) {
      const float value = widen(source[base + i]) - mean;
      sum += value * value;
    }
    sum = reduce_block(sum, Sum(), scratch);
  }
  const float rstd = rsqrtf(sum / static_cast<float>(op.hidden) + op.epsilon);
  for (int i = threadIdx.x; i < op.hidden; i += 256) {
    float value = (widen(source[base + i]) - mean) * rstd * op.weight.at(i);
    if constexpr (kMean) value += op.bias.at(i);
    y[base + i] = narrow<T>(value);
  }
  if (threadIdx.x == 0) {
    op.rstd[row] = rstd;
    if constexpr (kMean) op.mean[row] = mean;
  }
}

template <typename T, bool kMean, bool kAdd>
void launch(cudaStream_t stream, const NormForward& norm, const Operands& op) {
  constexpr int N = kPack<T>;
  const T* x = static_cast<const T*>(norm.x.data);
  const T* addend = static_cast<const T*>(norm.addend.data);
  T* sum = static_cast<T*>(norm.sum.data);
  T* y = static_cast<T*>(norm.y.data);
  const auto rows = static_cast<unsigned>(norm.rows);
  if (op.hidden % N == 0 && op.hidden <= kWarp * 4 * N) {
    norm_row<T, N, kWarp, 4, kMean, kAdd><<<(rows + 7) / 8, 256, 0, stream>>>(x, addend, sum, y, op);
  } else if (op.hidden % N == 0 && op.hidden <= 256 * 4 * N) {
    norm_row<T, N, 256, 4, kMean, kAdd><<<rows, 256, 0, stream>>>(x, addend, sum, y, op);
  } else {
    norm_any<T, kMean, kAdd><<<rows, 256, 0, stream>>>(x, addend, sum, y, op);
  }
}

template <typename T>
void launch_typed(cudaStream_t stream, const NormForward& norm, const Operands& op) {
  const bool mean = norm.bias.data != nullptr;
  const bool add = norm.addend.data != nullptr;
  if (mean) {
    add ? launch<T, true, true>(stream, norm, op) : launch<T, true, false>(stream, norm, op);
  } else {
    add ? launch<T, false, true>(stream, norm, op) : launch<T, false, false>(stream, norm, op);
  }
}

AnyFloat any(Floats floats) {
  return {floats.data, floats.storage == Storage::bf16};
}

}  // namespace

void launch_norm(cudaStream_t stream, const NormForward& norm) {
  const Operands op{any(norm.weight), any(norm.bias), norm.mean,
                    norm.rstd,        norm.rows,      static_cast<int>(norm.hidden),
                    norm.epsilon};
  if (norm.x.storage == Storage::bf16) {
    launch_typed<bf16>(stream, norm, op);
  } else {
    launch_typed<float>(stream, norm, op);
  }
}

}  // namespace capstan::runtime::cuda
