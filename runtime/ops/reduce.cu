#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

// Column sums: block (x, y) sums the rows of slice y for 32 packs of columns; 8 row threads, added in order.
// The last block of a column group adds up the slices, in order.
template <typename T, int N>
__global__ void __launch_bounds__(256)
    column_sums(const T* dy, float* partial, AnyFloat out, unsigned* tickets, std::int64_t rows,
                std::int64_t columns, std::int64_t rows_per_slice) {
  __shared__ float sums[8][kWarp * N];
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.x) * kWarp + threadIdx.x) * N;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.y) * rows_per_slice;
  const std::int64_t end = min(first + rows_per_slice, rows);
  float sum[N] = {};
  if (column < columns) {
#pragma unroll 4
    for (std::int64_t row = first + threadIdx.y; row < end; row += 8) {
      float value[N];
      load<N>(dy + row * columns + column, value);
#pragma unroll
      for (int k = 0; k < N; ++k) sum[k] += value[k];
    }
  }
#pragma unroll
  for (int k = 0; k < N; ++k) sums[threadIdx.y][threadIdx.x * N + k] = sum[k];
  __syncthreads();
  for (int i = threadIdx.y * kWarp + threadIdx.x; i < kWarp * N; i += 256) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarp * N + i;
    if (at >= columns) continue;
    float total = sums[0][i];
#pragma unroll
    for (int y = 1; y < 8; ++y) total += sums[y][i];
    partial[static_cast<std::int64_t>(blockIdx.y) * columns + at] = total;
  }
  if (!is_last_block(tickets + blockIdx.x, gridDim.y)) return;
  for (int i = threadIdx.y * kWarp + threadIdx.x; i < kWarp * N; i += 256) {
    const std::int64_t at = static_cast<std::int64_t>(blockIdx.x) * kWarp * N + i;
    if (at >= columns) continue;
    float total = 0.0F;
#pragma unroll 8
    for (unsigned slice = 0; slice < gridDim.y; ++slice) total += __ldcg(partial + slice * columns + at);
    out.set(at, out.at(at) + total);
  }
}

template <typename T>
__global__ void check_finite(const T* x, std::int64_t count, std::int32_t* nonfinite, int mask) {
  bool bad = false;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += static_cast<std::int64_t>(gridDim.x) * blockDim.x) {
    bad |= !isfinite(widen(x[i]));
  }
  if (bad) atomicOr(nonfinite, mask);
}

template <typename T>
void column_sums_typed(cudaStream_t stream, const T* dy, float* partial, AnyFloat out, unsigned* tickets,
                       std::int64_t rows, std::int64_t columns, int slices) {
  const std::int64_t rows_per_slice = (rows + slices - 1) / slices;
  constexpr int N = kPack<T>;
  const int width = columns % N == 0 ? N * kWarp : kWarp;
  const dim3 grid(static_cast<unsigned>((columns + width - 1) / width), static_cast<unsigned>(slices));
  if (columns % N == 0) {
    column_sums<T, N>
        <<<grid, dim3(kWarp, 8), 0, stream>>>(dy, partial, out, tickets, rows, columns, rows_per_slice);
  } else {
    column_sums<T, 1>
        <<<grid, dim3(kWarp, 8), 0, stream>>>(dy, partial, out, tickets, rows, columns, rows_per_slice);
  }
}

}  // namespace

std::int64_t bias_backward_tickets(std::int64_t columns) {
  return (columns + kWarp - 1) / kWarp;
}

void launch_bias_backward(cudaStream_t stream, Floats dy, Floats dbias, float* partial,
                          std::int64_t partial_floats, unsigned* tickets, std::int64_t rows,
                          std::int64_t columns) {
  // Slices: enough blocks for a large chip, at least 32 rows each, no more than the workspace holds.
  const std::int64_t across = (columns + kWarp * 8 - 1) / (kWarp * 8);
  std::int64_t slices = (528 + across - 1) / across;
  if (slices > (rows + 31) / 32) slices = (rows + 31) / 32;
  if (slices > partial_floats / columns) slices = partial_floats / columns;
  if (slices < 1) slices = 1;
  const AnyFloat out{dbias.data, dbias.storage == Storage::bf16};
  if (dy.storage == Storage::bf16) {
    column_sums_typed(stream, static_cast<const bf16*>(dy.data), partial, out, tickets, rows, columns,
                      static_cast<int>(slices));
  } else {
    column_sums_typed(stream, static_cast<const float*>(dy.data), partial, out, tickets, rows, columns,
                      static_cast<int>(slices));
  }
}

void launch_check_finite(cudaStream_t stream, Floats x, std::int64_t count, std::int32_t* nonfinite,
                         int bit) {
  const std::int64_t blocks = (count + 255) / 256;
  const auto grid = static_cast<unsigned>(blocks < 1056 ? blocks : 1056);
  if (x.storage == Storage::bf16) {
    check_finite<<<grid, 256, 0, stream>>>(static_cast<const bf16*>(x.data), count, nonfinite, 1 << bit);
  } else {
    check_finite<<<grid, 256, 0, stream>>>(static_cast<const float*>(x.data), count, nonfinite, 1 << bit);
  }
}

}  // namespace capstan::runtime::cuda
