#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

// The data readers refuse tokens beyond the vocabulary; should one get here, it counts as the table's last
// row, as on the host, instead of being a stray read.
__device__ __forceinline__ std::int32_t table_row(std::int32_t token, std::int64_t vocab) {
  return token < 0 || token >= vocab ? static_cast<std::int32_t>(vocab - 1) : token;
}

// One block per token.
template <typename T, int N>
__global__ void embed(const std::int32_t* tokens, const T* table, const T* position_table, T* out,
                      std::int64_t vocab, std::int64_t hidden, std::int64_t seq_length) {
  const std::int64_t row = blockIdx.x;
  const T* from = table + table_row(tokens[row], vocab) * hidden;
  const T* position = position_table == nullptr ? nullptr : position_table + (row % seq_length) * hidden;
  for (std::int64_t i = static_cast<std::int64_t>(threadIdx.x) * N; i < hidden;
       i += static_cast<std::int64_t>(blockDim.x) * N) {
    float value[N];
    load<N>(from + i, value);
    if (position != nullptr) {
      float add[N];
      load<N>(position + i, add);
#pragma unroll
      for (int k = 0; k < N; ++k) value[k] += add[k];
    }
    store<N>(out + row * hidden + i, value);
  }
}

constexpr int kBackwardThreads = 128;
constexpr int kTokensPerScan = 8 * kBackwardThreads;

// Block (x, y) owns `rows` table rows and 128 * N columns. It scans all tokens in order, gathers those that
// fall into its rows (in order, by ballots), and adds their gradient rows into shared memory; each thread
// owns its columns, so the order of every sum is the order of the tokens.
template <typename T, int N>
__global__ void embed_backward(const T* dx, const std::int32_t* tokens, AnyFloat dtable, std::int64_t count,
                               std::int64_t vocab, std::int64_t hidden, int rows) {
  extern __shared__ float sums[];  // [rows][128 * N]
  __shared__ int hits[kTokensPerScan];
  __shared__ short hit_rows[kTokensPerScan];
  __shared__ int warp_hits[kBackwardThreads / kWarp];
  __shared__ unsigned touched[2];  // rows <= 64
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * rows;
  const std::int64_t end_row = min(first_row + rows, vocab);
  const std::int64_t column = (static_cast<std::int64_t>(blockIdx.y) * kBackwardThreads + threadIdx.x) * N;
  const bool has_column = column < hidden;
  const int lane = threadIdx.x % kWarp;
  const int warp = threadIdx.x / kWarp;
  const int width = kBackwardThreads * N;
  float* mine = sums + threadIdx.x * N;
  for (int row = 0; row < rows; ++row) {
#pragma unroll
    for (int k = 0; k < N; ++k) mine[row * width + k] = 0.0F;
  }
  if (threadIdx.x < 2) touched[threadIdx.x] = 0;

  for (std::int64_t scan = 0; scan < count; scan += kTokensPerScan) {
    // Thread i looks at tokens scan + 8 i .. + 7, so that hits in thread order are hits in token order.
    int found = 0;
    std::int32_t token[8];
#pragma unroll
    for (int k = 0; k < 8; ++k) {
      const std::int64_t i = scan + static_cast<std::int64_t>(threadIdx.x) * 8 + k;
      token[k] = i < count ? table_row(tokens[i], vocab) : -1;
      found += token[k] >= first_row && token[k] < end_row;
    }
    int before = found;  // inclusive scan over the lanes
#pragma unroll
    for (int offset = 1; offset < kWarp; offset *= 2) {
      const int other = __shfl_up_sync(0xffffffffU, before, offset);
      if (lane >= offset) before += other;
    }
    if (lane == kWarp - 1) warp_hits[warp] = before;
    __syncthreads();
    int total = 0;
    int slot = before - found;
#pragma unroll
    for (int w = 0; w < kBackwardThreads / kWarp; ++w) {
      if (w < warp) slot += warp_hits[w];
      total += warp_hits[w];
    }
    if (found != 0) {
#pragma unroll
      for (int k = 0; k < 8; ++k) {
        if (token[k] >= first_row && token[k] < end_row) {
          const int row = static_cast<int>(token[k] - first_row);
          hits[slot] = static_cast<int>(threadIdx.x) * 8 + k;
          hit_rows[slot] = static_cast<short>(row);
          atomicOr(&touched[row / 32], 1U << (row % 32));
          ++slot;
        }
      }
    }
    __syncthreads();
    if (has_column) {
      int hit = 0;
      for (; hit + 4 <= total; hit += 4) {  // four rows in flight, added one after another
        float value[4][N];
#pragma unroll
        for (int j = 0; j < 4; ++j) load<N>(dx + (scan + hits[hit + j]) * hidden + column, value[j]);
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
          for (int k = 0; k < N; ++k) mine[hit_rows[hit + j] * width + k] += value[j][k];
        }
      }
      for (; hit < total; ++hit) {
        float value[N];
        load<N>(dx + (scan + hits[hit]) * hidden + column, value);
#pragma unroll
        for (int k = 0; k < N; ++k) mine[hit_rows[hit] * width + k] += value[k];
      }
    }
    __syncthreads();
  }
  if (!has_column) return;
  for (int row = 0; row < rows; ++row) {
    if ((touched[row / 32] >> (row % 32) & 1U) == 0) continue;
    const std::int64_t at = (first_row + row) * hidden + column;
#pragma unroll
    for (int k = 0; k < N; ++k) dtable.set(at + k, dtable.at(at + k) + mine[row * width + k]);
  }
}

template <typename T>
__global__ void position_backward(const T* dx, AnyFloat dposition, std::int64_t sequences,
                                  std::int64_t seq_length, std::int64_t hidden) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= seq_length * hidden) return;
  float sum = 0.0F;
  for (std::int64_t b = 0; b < sequences; ++b) sum += widen(dx[b * seq_length * hidden + i]);
  dposition.set(i, dposition.at(i) + sum);
}

template <typename T>
void embed_typed(cudaStream_t stream, const std::int32_t* tokens, const T* table, const T* positions, T* out,
                 std::int64_t count, std::int64_t vocab, std::int64_t hidden, std::int64_t seq_length) {
  const auto blocks = static_cast<unsigned>(count);
  if (hidden % kPack<T> == 0) {
    embed<T, kPack<T>><<<blocks, 128, 0, stream>>>(tokens, table, positions, out, vocab, hidden, seq_length);
  } else {
    embed<T, 1><<<blocks, 128, 0, stream>>>(tokens, table, positions, out, vocab, hidden, seq_length);
  }
}

template <typename T, int N>
void embed_backward_typed(cudaStream_t stream, const T* dx, const std::int32_t* tokens, AnyFloat dtable,
                          std::int64_t count, std::int64_t vocab, std::int64_t hidden) {
  // Enough blocks to fill a large chip; at most 32 rows, so that the sums stay below 48 KB.
  std::int64_t rows = (vocab + 1055) / 1056;
  if (rows > 32) rows = 32;
  if (rows * kBackwardThreads * N * 4 > 40960) rows = 40960 / (kBackwardThreads * N * 4);
  const std::size_t shared = static_cast<std::size_t>(rows) * kBackwardThreads * N * sizeof(float);
  const dim3 grid(static_cast<unsigned>((vocab + rows - 1) / rows),
                  static_cast<unsigned>((hidden + kBackwardThreads * N - 1) / (kBackwardThreads * N)));
  embed_backward<T, N><<<grid, kBackwardThreads, shared, stream>>>(dx, tokens, dtable, count, vocab, hidden,
                                                                   static_cast<int>(rows));
}

template <typename T>
void embedding_backward_typed(cudaStream_t stream, const T* dx, const std::int32_t* tokens, AnyFloat dtable,
                              AnyFloat dposition, std::int64_t count, std::int64_t vocab, std::int64_t hidden,
                              std::int64_t seq_length) {
  if (hidden % 2 == 0) {
    embed_backward_typed<T, 2>(stream, dx, tokens, dtable, count, vocab, hidden);
  } else {
    embed_backward_typed<T, 1>(stream, dx, tokens, dtable, count, vocab, hidden);
  }
  if (dposition.data != nullptr) {
    const auto blocks = static_cast<unsigned>((seq_length * hidden + 255) / 256);
    position_backward<T><<<blocks, 256, 0, stream>>>(dx, dposition, count / seq_length, seq_length, hidden);
  }
}

AnyFloat any(Floats floats) {
  return {floats.data, floats.storage == Storage::bf16};
}

}  // namespace

void launch_embedding(cudaStream_t stream, const std::int32_t* tokens, Floats table, Floats position_table,
                      Floats out, std::int64_t count, std::int64_t vocab, std::int64_t hidden,
                      std::int64_t seq_length) {
  if (out.storage == Storage::bf16) {
    embed_typed(stream, tokens, static_cast<const bf16*>(table.data),
                static_cast<const bf16*>(position_table.data), static_cast<bf16*>(out.data), count, vocab,
                hidden, seq_length);
  } else {
    embed_typed(stream, tokens, static_cast<const float*>(table.data),
                static_cast<const float*>(position_table.data), static_cast<float*>(out.data), count, vocab,
                hidden, seq_length);
  }
}

void launch_embedding_backward(cudaStream_t stream, Floats dx, const std::int32_t* tokens, Floats dtable,
                               Floats dposition, std::int64_t count, std::int64_t vocab, std::int64_t hidden,
                               std::int64_t seq_length) {
  if (dx.storage == Storage::bf16) {
    embedding_backward_typed(stream, static_cast<const bf16*>(dx.data), tokens, any(dtable), any(dposition),
                             count, vocab, hidden, seq_length);
  } else {
    embedding_backward_typed(stream, static_cast<const float*>(dx.data), tokens, any(dtable), any(dposition),
                             count, vocab, hidden, seq_length);
  }
}

}  // namespace capstan::runtime::cuda
