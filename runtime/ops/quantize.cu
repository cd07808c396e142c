#include <cuda_fp8.h>

#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kTile = 64;

// Largest magnitude of each block's share. NaN is passed over here and stays NaN in the result.
template <typename T, int N>
__global__ void __launch_bounds__(kThreads) find_largest(const T* x, std::int64_t count, float* partial) {
  __shared__ float scratch[kWarp];
  float largest = 0.0F;
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * kThreads * N;
  for (std::int64_t i = (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * N; i < count;
       i += stride) {
    float value[N];
    load<N>(x + i, value);
#pragma unroll
    for (int k = 0; k < N; ++k) largest = fmaxf(largest, fabsf(value[k]));
  }
  largest = reduce_block(largest, Max(), scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = largest;
}

template <__nv_fp8_interpretation_t kFormat>
__device__ __forceinline__ std::uint8_t to_fp8(float value) {
  return __nv_cvt_float_to_fp8(value, __NV_SATFINITE, kFormat);
}

// A tile of 64 x 64: read in rows, written in rows of the result and in rows of its transpose.
template <typename T, __nv_fp8_interpretation_t kFormat>
__global__ void __launch_bounds__(kThreads)
    convert(const T* x, const float* partial, int blocks, std::uint8_t* rows_out, std::uint8_t* columns_out,
            float* scale, std::int64_t rows, std::int64_t columns) {
  __shared__ float scratch[kWarp];
  __shared__ std::uint8_t tile[kTile][kTile + 4];
  constexpr float kLargest = kFormat == __NV_E4M3 ? 448.0F : 57344.0F;
  float largest = 0.0F;
  for (int i = static_cast<int>(threadIdx.x); i < blocks; i += kThreads) largest = fmaxf(largest, partial[i]);
  largest = reduce_block(largest, Max(), scratch);
  const float to_units = largest > 0.0F ? kLargest / largest : 1.0F;
  if (blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0)
    *scale = largest > 0.0F ? largest / kLargest : 1.0F;

  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.y) * kTile;
  const std::int64_t first_column = static_cast<std::int64_t>(blockIdx.x) * kTile;
  const int lane = static_cast<int>(threadIdx.x) % 16;  // four columns each
  for (int r = static_cast<int>(threadIdx.x) / 16; r < kTile; r += kThreads / 16) {
    const std::int64_t row = first_row + r;
    const std::int64_t column = first_column + lane * 4;
    if (row >= rows || column >= columns) continue;
    float value[4];
    load<4>(x + row * columns + column, value);
    uchar4 four;
    four.x = to_fp8<kFormat>(value[0] * to_units);
    four.y = to_fp8<kFormat>(value[1] * to_units);
    four.z = to_fp8<kFormat>(value[2] * to_units);
    four.w = to_fp8<kFormat>(value[3] * to_units);
    *reinterpret_cast<uchar4*>(rows_out + row * columns + column) = four;
    *reinterpret_cast<uchar4*>(&tile[r][lane * 4]) = four;
  }
  __syncthreads();
  for (int c = static_cast<int>(threadIdx.x) / 16; c < kTile; c += kThreads / 16) {
    const std::int64_t column = first_column + c;
    const std::int64_t row = first_row + lane * 4;
    if (column >= columns || row >= rows) continue;
    const uchar4 four =
        make_uchar4(tile[lane * 4][c], tile[lane * 4 + 1][c], tile[lane * 4 + 2][c], tile[lane * 4 + 3][c]);
    *reinterpret_cast<uchar4*>(columns_out + column * rows + row) = four;
  }
}

template <typename T>
void quantize(cudaStream_t stream, const QuantizeFp8& q) {
  const auto* x = static_cast<const T*>(q.x.data);
  const std::int64_t count = q.rows * q.columns;
  constexpr int N = kPack<T>;
  const std::int64_t wanted = (count / N + kThreads - 1) / kThreads;
  const int blocks = static_cast<int>(wanted < plan::kLargestPartials ? wanted : plan::kLargestPartials);
  find_largest<T, N><<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(x, count, q.partial);
  const dim3 grid(static_cast<unsigned>((q.columns + kTile - 1) / kTile),
                  static_cast<unsigned>((q.rows + kTile - 1) / kTile));
  auto* rows_out = static_cast<std::uint8_t*>(q.rows_out);
  auto* columns_out = static_cast<std::uint8_t*>(q.columns_out);
  if (q.format == Storage::f8e4m3) {
    convert<T, __NV_E4M3><<<grid, kThreads, 0, stream>>>(x, q.partial, blocks, rows_out, columns_out, q.scale,
                                                         q.rows, q.columns);
  } else {
    convert<T, __NV_E5M2><<<grid, kThreads, 0, stream>>>(x, q.partial, blocks, rows_out, columns_out, q.scale,
                                                         q.rows, q.columns);
  }
}

}  // namespace

void launch_quantize_fp8(cudaStream_t stream, const QuantizeFp8& q) {
  q.x.storage == Storage::bf16 ? quantize<bf16>(stream, q) : quantize<float>(stream, q);
}

}  // namespace capstan::runtime::cuda
