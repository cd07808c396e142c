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

// dx of a row, and this block's share of the weight (and bias) gradient, which each lane gathers for its own
// columns over all rows of its warp; the warps' shares meet at the end, in warp order. Rows go to warps in a
// fixed pattern. One warp or two own a row; rows stay packed in registers, the weights are in shared memory,
// so that enough warps fit to keep the memory busy.
template <typename T, int N, int kPacks, bool kMean, int kBlocksPerProcessor, int kWarpsPerRow>
__global__ void __launch_bounds__(kThreads, kBlocksPerProcessor)
    backward_row(const T* dy, const T* x, T* dx, Operands op) {
  constexpr int kRowThreads = kWarp * kWarpsPerRow;
  constexpr int kRows = kThreads / kRowThreads;
  extern __shared__ float columns[];  // [hidden]: weights, then the sums over the warps
  const int lane = static_cast<int>(threadIdx.x) % kRowThreads;
  const int slot = static_cast<int>(threadIdx.x) / kRowThreads;
  int turn_of_exchange = 0;
  __shared__ float2 exchange[2][kThreads / kWarp];
  for (int i = threadIdx.x; i < op.hidden; i += kThreads) columns[i] = op.weight.at(i);
  __syncthreads();
  float dweight[kPacks][N];
  float dbias[kMean ? kPacks : 1][N];
#pragma unroll
  for (int p = 0; p < kPacks; ++p) {
#pragma unroll
    for (int k = 0; k < N; ++k) {
      dweight[p][k] = 0.0F;
      if constexpr (kMean) dbias[p][k] = 0.0F;
    }
  }
  const float inverse_hidden = 1.0F / static_cast<float>(op.hidden);
  // Every warp makes the same number of turns, so that the two of a row can meet at a barrier of the block.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * kRows; first < op.rows;
       first += static_cast<std::int64_t>(gridDim.x) * kRows) {
    const std::int64_t row = min(first + slot, op.rows - 1);
    const bool owns = first + slot < op.rows;
    const std::int64_t base = row * op.hidden;
    Pack<T, N> dy_pack[kPacks];
    Pack<T, N> x_pack[kPacks];
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = (lane + p * kRowThreads) * N;
      if (owns && column < op.hidden) {
        dy_pack[p] = *reinterpret_cast<const Pack<T, N>*>(dy + base + column);
        x_pack[p] = *reinterpret_cast<const Pack<T, N>*>(x + base + column);
      }
    }
    const float rstd = op.rstd[row];
    const float mean = kMean ? op.mean[row] : 0.0F;
    float dot = 0.0F;
    float total = 0.0F;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = (lane + p * kRowThreads) * N;
      if (owns && column < op.hidden) {
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float gradient = widen(dy_pack[p].element[k]);
          const float unit = (widen(x_pack[p].element[k]) - mean) * rstd;
          dweight[p][k] += gradient * unit;
          if constexpr (kMean) dbias[p][k] += gradient;
          const float weighted = gradient * columns[column + k];
          dot += weighted * unit;
          if constexpr (kMean) total += weighted;
        }
      }
    }
    dot = reduce_warp(dot, Sum());
    if constexpr (kMean) total = reduce_warp(total, Sum());
    if constexpr (kWarpsPerRow == 2) {
      // Two buffers in turn make one barrier a row enough.
      const int warp = static_cast<int>(threadIdx.x) / kWarp;
      float2* sums = exchange[turn_of_exchange];
      turn_of_exchange ^= 1;
      if (lane % kWarp == 0) sums[warp] = make_float2(dot, total);
      __syncthreads();
      const float2 left = sums[2 * slot];
      const float2 right = sums[2 * slot + 1];
      dot = left.x + right.x;
      total = left.y + right.y;
    }
    dot *= inverse_hidden;
    total *= inverse_hidden;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
      const int column = (lane + p * kRowThreads) * N;
      if (owns && column < op.hidden) {
        float out[N];
        if (op.accumulate_dx) {
          load<N>(dx + base + column, out);
        } else {
#pragma unroll
          for (int k = 0; k < N; ++k) out[k] = 0.0F;
        }
#pragma unroll
        for (int k = 0; k < N; ++k) {
          const float unit = (widen(x_pack[p].element[k]) - mean) * rstd;
          out[k] += rstd * (widen(dy_pack[p].element[k]) * columns[column + k] - total - unit * dot);
        }
        store<N>(dx + base + column, out);
      }
    }
  }
  constexpr int kKinds = kMean ? 2 : 1;
#pragma unroll
  for (int kind = 0; kind < kKinds; ++kind) {
    float* out = op.partial + (static_cast<std::int64_t>(blockIdx.x) * kKinds + kind) * op.hidden;
    __syncthreads();
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
  const std::size_t shared = static_cast<std::size_t>(op.hidden) * sizeof(float);
  const int packs = op.hidden % N == 0 ? (op.hidden / N + kWarp - 1) / kWarp : 9;
  if (packs <= 2) {
    backward_row<T, N, 2, kMean, 2, 1><<<most_blocks, kThreads, shared, stream>>>(dy, x, dx, op);
  } else if (packs == 3) {
    backward_row<T, N, 3, kMean, 2, 1><<<most_blocks, kThreads, shared, stream>>>(dy, x, dx, op);
  } else if (packs == 4) {
    backward_row<T, N, 4, kMean, kMean ? 1 : 2, 1><<<most_blocks, kThreads, shared, stream>>>(dy, x, dx, op);
  } else if (packs <= 8) {
    backward_row<T, N, 4, kMean, kMean ? 1 : 2, 2><<<most_blocks, kThreads, shared, stream>>>(dy, x, dx, op);
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
