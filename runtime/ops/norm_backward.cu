#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

struct Operands {
  AnyFloat weight;
  const float* mean;
  const float* rstd;
  float* partial;  ///< [blocks][kMean ? 2 : 1][hidden]
  std::int64_t rows;
  int hidden;
  bool accumulate_dx;
};

constexpr int kThreads = 256;

// dx of a row, and this block's share of the weight (and bias) gradient, which each thread gathers for its
// own columns over all rows of the block and leaves in `partial`. Rows go to blocks in a fixed pattern.
// kRowThreads as in norm.cu.
template <typename T, int N, int kRowThreads, int kPacks, bool kMean>
__global__ void __launch_bounds__(kThreads) backward_row(const T* dy, const T* x, T* dx, Operands op) {
  constexpr int kRows = kThreads / kRowThreads;  // rows in flight per block
  __shared__ float scratch[kWarp];
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const int slot = static_cast<int>(threadIdx.x) / kRowThreads;
  float weight[kPacks][N];
  float dweight[kPacks][N];
  float dbias[kMean ? kPacks : 1][N];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
    const int column = (lane + p * kRowThreads) * N;
    if (column < op.hidden) {
      op.weight.load<N>(column, weight[p]);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) weight[p][k] = 0.0F;
    }
#pragma unroll
    for (int k = 0; k < N; ++k) dweight[p][k] = 0.0F;
    if constexpr (kMean) {
#pragma unroll
      for (int k = 0; k < N; ++k) dbias[p][k] = 0.0F;
    }
  }
  const float inverse_hidden = 1.0F / static_cast<float>(op.hidden);
  for (std::int64_t row = static_cast<std::int64_t>(blockIdx.x) * kRows + slot; row < op.rows;
       row += static_cast<std::int64_t>(gridDim.x) * kRows) {
    const std::int64_t base = row * op.hidden;
    const float rstd = op.rstd[row];
    const float mean = kMean ? op.mean[row] : 0.0F;
    float g[kPacks][N];     // dy
    float unit[kPacks][N];  // (x - mean) * rstd
    float dot = 0.0F;
    float total = 0.0F;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = (lane + p * kRowThreads) * N;
      if (column < op.hidden) {
        load<N>(dy + base + column, g[p]);
        load<N>(x + base + column, unit[p]);
#pragma unroll
        for (int k = 0; k < N; ++k) {
          unit[p][k] = (unit[p][k] - mean) * rstd;
          dweight[p][k] += g[p][k] * unit[p][k];
          if constexpr (kMean) dbias[p][k] += g[p][k];
          g[p][k] *= weight[p][k];
          dot += g[p][k] * unit[p][k];
          if constexpr (kMean) total += g[p][k];
        }
      }
    }
    if constexpr (kRowThreads == kWarp) {
      dot = reduce_warp(dot, Sum());
      if constexpr (kMean) total = reduce_warp(total, Sum());
    } else {
      dot = reduce_block(dot, Sum(), scratch);
      if constexpr (kMean) total = reduce_block(total, Sum(), scratch);
    }
    dot *= inverse_hidden;
    total *= inverse_hidden;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = (lane + p * kRowThreads) * N;
      if (column < op.hidden) {
        float out[N];
#pragma unroll
        for (int k = 0; k < N; ++k) out[k] = rstd * (g[p][k] - total - unit[p][k] * dot);
        if (op.accumulate_dx) {
          float before[N];
          load<N>(dx + base + column, before);
#pragma unroll
          for (int k = 0; k < N; ++k) out[k] += before[k];
        }
        store<N>(dx + base + column, out);
      }
    }
  }
  // Over the block's slots in slot order, then out.
  extern __shared__ float columns[];  // [kRows > 1 ? hidden : 0]
  constexpr int kKinds = kMean ? 2 : 1;
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    float* out = op.partial + (static_cast<std::int64_t>(blockIdx.x) * kKinds + kind) * op.hidden;
    if constexpr (kRows == 1) {
#pragma unroll
      for (int p = 0; p < kPacks; ++p) {
        const int column = (lane + p * kRowThreads) * N;
        if (column < op.hidden) {
#pragma unroll
          for (int k = 0; k < N; ++k) out[column + k] = kind == 0 ? dweight[p][k] : dbias[kMean ? p : 0][k];
        }
      }
    } else {
      for (int turn = 0; turn < kRows; ++turn) {
        if (slot == turn) {
#pragma unroll
          for (int p = 0; p < kPacks; ++p) {
            const int column = (lane + p * kRowThreads) * N;
            if (column < op.hidden) {
#pragma unroll
              for (int k = 0; k < N; ++k) {
                const float value = kind == 0 ? dweight[p][k] : dbias[kMean ? p : 0][k];
                columns[column + k] = turn == 0 ? value : columns[column + k] + value;
              }
            }
          }
        }
        __syncthreads();
      }
      for (int column = threadIdx.x; column < op.hidden; column += kThreads) out[column] = columns[column];
      __syncthreads();
    }
  }
}

// Rows of any length and alignment: one block a row in flight; the share of the weight gradient is kept in
// `partial`.
template <typename T, bool kMean>
__global__ void __launch_bounds__(kThreads) backward_any(const T* dy, const T* x, T* dx, Operands op) {
  __shared__ float scratch[kWarp];
  constexpr int kKinds = kMean ? 2 : 1;
  float* dweight = op.partial + static_cast<std::int64_t>(blockIdx.x) * kKinds * op.hidden;
  float* dbias = dweight + op.hidden;
  for (int i = threadIdx.x; i < kKinds * op.hidden; i += kThreads) dweight[i] = 0.0F;
  __syncthreads();
  const float inverse_hidden = 1.0F / static_cast<float>(op.hidden);
  for (std::int64_t row = blockIdx.x; row < op.rows; row += gridDim.x) {
    const std::int64_t base = row * op.hidden;
    const float rstd = op.rstd[row];
    const float mean = kMean ? op.mean[row] : 0.0F;
    float dot = 0.0F;
    float total = 0.0F;
    for (int i = threadIdx.x; i < op.hidden; i += kThreads) {
      const float g = widen(dy[base + i]);
      const float unit = (widen(x[base + i]) - mean) * rstd;
      dweight[i] += g * unit;
      if constexpr (kMean) dbias[i] += g;
      dot += g * op.weight.at(i) * unit;
      if constexpr (kMean) total += g * op.weight.at(i);
    }
    dot = reduce_block(dot, Sum(), scratch) * inverse_hidden;
    if constexpr (kMean) total = reduce_block(total, Sum(), scratch) * inverse_hidden;
    for (int i = threadIdx.x; i < op.hidden; i += kThreads) {
      const float unit = (widen(x[base + i]) - mean) * rstd;
      float out = rstd * (widen(dy[base + i]) * op.weight.at(i) - total - unit * dot);
      if (op.accumulate_dx) out += widen(dx[base + i]);
      dx[base + i] = narrow<T>(out);
    }
  }
}

// gradient[column] += sum of the blocks' shares in block order. 8 threads split the blocks of a column; their
// sums are added in thread order.
__global__ void gather_partial(const float* partial, AnyFloat dweight, AnyFloat dbias, int blocks, int kinds,
                               int hidden) {
  __shared__ float sums[8][kWarp];
  const int column = static_cast<int>(blockIdx.x) * kWarp + static_cast<int>(threadIdx.x);
  const int kind = blockIdx.y;
  float sum = 0.0F;
  if (column < hidden) {
    for (int b = threadIdx.y; b < blocks; b += 8) {
      sum += partial[(static_cast<std::int64_t>(b) * kinds + kind) * hidden + column];
    }
  }
  sums[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= hidden) return;
#pragma unroll
  for (int i = 1; i < 8; ++i) sum += sums[i][threadIdx.x];
  const AnyFloat& out = kind == 0 ? dweight : dbias;
  out.set(column, out.at(column) + sum);
}

template <typename T, bool kMean>
void launch(cudaStream_t stream, const NormBackward& norm, const Operands& op, int most_blocks) {
  constexpr int N = kPack<T>;
  const T* dy = static_cast<const T*>(norm.dy.data);
  const T* x = static_cast<const T*>(norm.x.data);
  T* dx = static_cast<T*>(norm.dx.data);
  const bool packs = op.hidden % N == 0;
  if (packs && op.hidden <= kWarp * 4 * N) {
    const std::size_t shared = static_cast<std::size_t>(op.hidden) * sizeof(float);
    backward_row<T, N, kWarp, 4, kMean><<<most_blocks, kThreads, shared, stream>>>(dy, x, dx, op);
  } else if (packs && op.hidden <= kThreads * N) {
    backward_row<T, N, kThreads, 1, kMean><<<most_blocks, kThreads, 0, stream>>>(dy, x, dx, op);
  } else if (packs && op.hidden <= kThreads * 4 * N) {
    backward_row<T, N, kThreads, 4, kMean><<<most_blocks, kThreads, 0, stream>>>(dy, x, dx, op);
  } else {
    backward_any<T, kMean><<<most_blocks, kThreads, 0, stream>>>(dy, x, dx, op);
  }
}

AnyFloat any(Floats floats) {
  return {floats.data, floats.storage == Storage::bf16};
}

}  // namespace

void launch_norm_backward(cudaStream_t stream, const NormBackward& norm) {
  const bool mean = norm.dbias.data != nullptr;
  const int kinds = mean ? 2 : 1;
  const int hidden = static_cast<int>(norm.hidden);
  const Operands op{any(norm.weight), norm.mean, norm.rstd,         norm.partial,
                    norm.rows,        hidden,    norm.accumulate_dx};
  // As many blocks as the workspace has room for, up to two for each multiprocessor of a large chip.
  std::int64_t blocks = norm.partial_floats / (static_cast<std::int64_t>(kinds) * hidden);
  if (blocks > 264) blocks = 264;
  if (blocks > norm.rows) blocks = norm.rows;
  if (blocks < 1) blocks = 1;
  if (norm.x.storage == Storage::bf16) {
    mean ? launch<bf16, true>(stream, norm, op, static_cast<int>(blocks))
         : launch<bf16, false>(stream, norm, op, static_cast<int>(blocks));
  } else {
    mean ? launch<float, true>(stream, norm, op, static_cast<int>(blocks))
         : launch<float, false>(stream, norm, op, static_cast<int>(blocks));
  }
  const dim3 grid(static_cast<unsigned>((hidden + kWarp - 1) / kWarp), static_cast<unsigned>(kinds));
  gather_partial<<<grid, dim3(kWarp, 8), 0, stream>>>(norm.partial, any(norm.dweight), any(norm.dbias),
                                                      static_cast<int>(blocks), kinds, hidden);
}

}  // namespace capstan::runtime::cuda
