// Attention backward on the tensor cores, the same bits on every run: one kernel owns keys and sums their
// gradients over the queries, one owns queries and sums over the keys, so nothing is added across blocks.
// Scores are made again from the log-sum-exp of the forward pass.
#include "runtime/ops/cuda_attention_tile.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRows = 64;  // keys or queries that a block owns: four warps of 16

// Width of the tile that runs along the other dimension: narrower where the accumulators need the registers.
template <int kHeadDim>
constexpr int kWidth = kHeadDim > 64 ? 32 : 64;

template <int kHeadDim>
constexpr std::size_t shared_bytes() {
  return static_cast<std::size_t>(2 * kRows + 4 * kWidth<kHeadDim>) * (kHeadDim + 8) * sizeof(bf16) +
         4 * kWidth<kHeadDim> * sizeof(float);
}

// sum (16 x 8 * kTiles) += left rows (16 x kHeadDim, from `left`) * transpose of the tile's rows.
template <int kHeadDim, int kTiles>
__device__ __forceinline__ void multiply_rows(float (&sum)[kTiles][4], const bf16* left, const bf16* tile) {
  constexpr int kPitch = kHeadDim + 8;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    std::uint32_t a[4];
    load_left<kPitch>(a, left + step * 16);
#pragma unroll
    for (int n = 0; n < kTiles / 2; ++n) {
      std::uint32_t b[4];
      load_right_of_rows<kPitch>(b, tile + n * 16 * kPitch + step * 16);
      multiply(sum[2 * n], a, b[0], b[1]);
      multiply(sum[2 * n + 1], a, b[2], b[3]);
    }
  }
}

// sum (16 x kHeadDim) += weights (16 x 8 * kTiles, rounded to bf16) * tile.
template <int kHeadDim, int kTiles>
__device__ __forceinline__ void multiply_columns(float (&sum)[kHeadDim / 8][4],
                                                 const float (&weights)[kTiles][4], const bf16* tile) {
  constexpr int kPitch = kHeadDim + 8;
#pragma unroll
  for (int step = 0; step < kTiles / 2; ++step) {
    std::uint32_t a[4];
    pack_left(a, weights[2 * step], weights[2 * step + 1]);
#pragma unroll
    for (int n = 0; n < kHeadDim / 16; ++n) {
      std::uint32_t b[4];
      load_right_of_columns<kPitch>(b, tile + step * 16 * kPitch + n * 16);
      multiply(sum[2 * n], a, b[0], b[1]);
      multiply(sum[2 * n + 1], a, b[2], b[3]);
    }
  }
}

template <int kHeadDim>
__device__ __forceinline__ void store_rows(const float (&sum)[kHeadDim / 8][4], bf16* matrix,
                                           std::int64_t width, int row, int limit) {
  const int c = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    if (row + half * 8 >= limit) continue;
    bf16* out = matrix + (row + half * 8) * width;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(out + n * 8 + c * 2) =
          pack_pair(sum[n][2 * half], sum[n][2 * half + 1]);
    }
  }
}

template <int kHeadDim, bool kDrops>
__global__ void __launch_bounds__(kThreads) backward_keys(AttentionOperands op) {
  constexpr int kPitch = kHeadDim + 8;
  constexpr int kQueries = kWidth<kHeadDim>;
  constexpr int kTile = kQueries * kPitch;
  extern __shared__ __align__(16) bf16 shared[];
  bf16* keys = shared;
  bf16* values = keys + kRows * kPitch;
  bf16* queries = values + kRows * kPitch;                   // two stages
  bf16* douts = queries + 2 * kTile;                         // two stages
  float* lse = reinterpret_cast<float*>(douts + 2 * kTile);  // two stages
  float* delta = lse + 2 * kQueries;                         // two stages

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4;
  const int c = lane % 4;
  const int kv = blockIdx.y;
  const int batch = blockIdx.z;
  const int first = static_cast<int>(blockIdx.x) * kRows;  // the first keys are seen by the most queries
  const int group = op.heads / op.kv_heads;
  const std::int64_t width = static_cast<std::int64_t>(op.heads + 2 * op.kv_heads) * kHeadDim;
  const std::int64_t out_width = static_cast<std::int64_t>(op.heads) * kHeadDim;
  const std::int64_t token0 = static_cast<std::int64_t>(batch) * op.seq_length;
  const bf16* matrix = op.qkv + token0 * width;
  const bf16* dout = op.dout + token0 * out_width;
  const std::int64_t key_column = static_cast<std::int64_t>(op.heads + kv) * kHeadDim;
  const std::int64_t value_column = static_cast<std::int64_t>(op.heads + op.kv_heads + kv) * kHeadDim;
  DropoutDraw draw = op.draw;
  if constexpr (kDrops) draw.counter = *op.counter;

  const int query_start = op.causal ? first / kQueries * kQueries : 0;
  const int tiles = (op.seq_length - query_start + kQueries - 1) / kQueries;
  const int turns = tiles * group;
  const auto prefetch = [&](int turn) {
    const int head = kv * group + turn / tiles;
    const int query0 = query_start + turn % tiles * kQueries;
    const int stage = turn % 2;
    copy_tile<kQueries, kHeadDim, kThreads>(queries + stage * kTile,
                                            matrix + static_cast<std::int64_t>(head) * kHeadDim, width,
                                            query0, op.seq_length);
    copy_tile<kQueries, kHeadDim, kThreads>(douts + stage * kTile,
                                            dout + static_cast<std::int64_t>(head) * kHeadDim, out_width,
                                            query0, op.seq_length);
    const std::int64_t stats = (static_cast<std::int64_t>(batch) * op.heads + head) * op.seq_length;
    const int i = static_cast<int>(threadIdx.x) % kQueries;
    const bool present = query0 + i < op.seq_length;
    const std::int64_t at = stats + (present ? query0 + i : 0);
    if (threadIdx.x < kQueries) copy_float_async(lse + stage * kQueries + i, op.lse + at, present);
    if (threadIdx.x >= kThreads - kQueries) {
      copy_float_async(delta + stage * kQueries + i, op.delta + at, present);
    }
  };
  copy_tile<kRows, kHeadDim, kThreads>(keys, matrix + key_column, width, first, op.seq_length);
  copy_tile<kRows, kHeadDim, kThreads>(values, matrix + value_column, width, first, op.seq_length);
  prefetch(0);
  commit_copies();

  float dkeys[kHeadDim / 8][4] = {};
  float dvalues[kHeadDim / 8][4] = {};
  const float log2_scale = op.scale * kLog2E;
  const int key = first + warp * 16 + g;  // and key + 8
  for (int turn = 0; turn < turns; ++turn) {
    wait_copies<0>();
    __syncthreads();  // the tile is there, and nobody reads the stage that is filled next
    if (turn + 1 < turns) prefetch(turn + 1);
    commit_copies();
    const int stage = turn % 2;
    const int head = kv * group + turn / tiles;
    const int query0 = query_start + turn % tiles * kQueries;
    const bf16* query_tile = queries + stage * kTile;
    const bf16* dout_tile = douts + stage * kTile;

    float scores[kQueries / 8][4] = {};  // rows: keys, columns: queries
    multiply_rows<kHeadDim>(scores, keys + warp * 16 * kPitch, query_tile);
    float dscores[kQueries / 8][4] = {};
    multiply_rows<kHeadDim>(dscores, values + warp * 16 * kPitch, dout_tile);
    const bool hides = query0 + kQueries > op.seq_length || (op.causal && query0 < first + warp * 16 + 15);
#pragma unroll
    for (int n = 0; n < kQueries / 8; ++n) {
      const int column = n * 8 + c * 2;
      const float2 query_lse = *reinterpret_cast<const float2*>(lse + stage * kQueries + column);
      const float2 query_delta = *reinterpret_cast<const float2*>(delta + stage * kQueries + column);
      unsigned bits = 15U;
      if constexpr (kDrops) {
        const std::uint64_t row =
            static_cast<std::uint64_t>(batch * op.heads + head) * op.seq_length + query0 + column;
        bits = keep_bits_by_key(draw, row * op.seq_length, first + warp * 16, op.seq_length);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float minus = (i % 2 == 0 ? query_lse.x : query_lse.y) * kLog2E;
        float probability = exp2_fast(fmaf(scores[n][i], log2_scale, -minus));
        if (hides) {
          const int query = query0 + column + i % 2;
          if (query >= op.seq_length || (op.causal && key + i / 2 * 8 > query)) probability = 0.0F;
        }
        float dprobability = dscores[n][i];
        float kept = probability;
        if constexpr (kDrops) {
          const float factor = (bits >> i & 1U) != 0 ? draw.scale : 0.0F;
          dprobability *= factor;
          kept *= factor;
        }
        dscores[n][i] =
            probability * (dprobability - (i % 2 == 0 ? query_delta.x : query_delta.y)) * op.scale;
        scores[n][i] = kept;
      }
    }
    multiply_columns<kHeadDim>(dvalues, scores, dout_tile);
    multiply_columns<kHeadDim>(dkeys, dscores, query_tile);
  }
  wait_copies<0>();
  bf16* out = op.out + token0 * width;
  store_rows<kHeadDim>(dkeys, out + key_column, width, key, op.seq_length);
  store_rows<kHeadDim>(dvalues, out + value_column, width, key, op.seq_length);
}

template <int kHeadDim, bool kDrops>
__global__ void __launch_bounds__(kThreads) backward_queries(AttentionOperands op) {
  constexpr int kPitch = kHeadDim + 8;
  constexpr int kKeys = kWidth<kHeadDim>;
  constexpr int kTile = kKeys * kPitch;
  extern __shared__ __align__(16) bf16 shared[];
  bf16* queries = shared;
  bf16* douts = queries + kRows * kPitch;
  bf16* keys = douts + kRows * kPitch;  // two stages
  bf16* values = keys + 2 * kTile;      // two stages

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4;
  const int c = lane % 4;
  const int head = blockIdx.y;
  const int batch = blockIdx.z;
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kRows;  // long rows first
  const std::int64_t width = static_cast<std::int64_t>(op.heads + 2 * op.kv_heads) * kHeadDim;
  const std::int64_t out_width = static_cast<std::int64_t>(op.heads) * kHeadDim;
  const std::int64_t token0 = static_cast<std::int64_t>(batch) * op.seq_length;
  const bf16* matrix = op.qkv + token0 * width;
  const std::int64_t head_column = static_cast<std::int64_t>(head) * kHeadDim;
  const int kv = head / (op.heads / op.kv_heads);
  const bf16* key_matrix = matrix + static_cast<std::int64_t>(op.heads + kv) * kHeadDim;
  const bf16* value_matrix = matrix + static_cast<std::int64_t>(op.heads + op.kv_heads + kv) * kHeadDim;
  DropoutDraw draw = op.draw;
  if constexpr (kDrops) draw.counter = *op.counter;

  const int end = op.causal ? min(first + kRows, op.seq_length) : op.seq_length;
  const int tiles = (end + kKeys - 1) / kKeys;
  const auto prefetch = [&](int tile) {
    copy_tile<kKeys, kHeadDim, kThreads>(keys + tile % 2 * kTile, key_matrix, width, tile * kKeys,
                                         op.seq_length);
    copy_tile<kKeys, kHeadDim, kThreads>(values + tile % 2 * kTile, value_matrix, width, tile * kKeys,
                                         op.seq_length);
  };
  copy_tile<kRows, kHeadDim, kThreads>(queries, matrix + head_column, width, first, op.seq_length);
  copy_tile<kRows, kHeadDim, kThreads>(douts, op.dout + token0 * out_width + head_column, out_width, first,
                                       op.seq_length);
  prefetch(0);
  commit_copies();

  const int row = first + warp * 16 + g;  // and row + 8
  const std::int64_t stats = (static_cast<std::int64_t>(batch) * op.heads + head) * op.seq_length;
  float lse[2];
  float delta[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query = min(row + half * 8, op.seq_length - 1);
    lse[half] = op.lse[stats + query] * kLog2E;
    delta[half] = op.delta[stats + query];
  }
  float dqueries[kHeadDim / 8][4] = {};
  const float log2_scale = op.scale * kLog2E;
  for (int tile = 0; tile < tiles; ++tile) {
    wait_copies<0>();
    __syncthreads();
    if (tile + 1 < tiles) prefetch(tile + 1);
    commit_copies();
    const int key0 = tile * kKeys;
    const bf16* key_tile = keys + tile % 2 * kTile;
    const bf16* value_tile = values + tile % 2 * kTile;
    float scores[kKeys / 8][4] = {};
    multiply_rows<kHeadDim>(scores, queries + warp * 16 * kPitch, key_tile);
    float dscores[kKeys / 8][4] = {};
    multiply_rows<kHeadDim>(dscores, douts + warp * 16 * kPitch, value_tile);
    const bool hides = key0 + kKeys > op.seq_length || (op.causal && key0 + kKeys > first + warp * 16 + 1);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
      unsigned bits = 15U;
      if constexpr (kDrops) {
        const std::uint64_t element = static_cast<std::uint64_t>(stats + row) * op.seq_length;
        bits = keep_bits_by_query(draw, element, element + 8ULL * op.seq_length, key0 + n * 8);
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float probability = exp2_fast(fmaf(scores[n][i], log2_scale, -lse[i / 2]));
        if (hides) {
          const int key = key0 + n * 8 + c * 2 + i % 2;
          if (key >= op.seq_length || (op.causal && key > row + i / 2 * 8)) probability = 0.0F;
        }
        float dprobability = dscores[n][i];
        if constexpr (kDrops) dprobability *= (bits >> i & 1U) != 0 ? draw.scale : 0.0F;
        scores[n][i] = probability * (dprobability - delta[i / 2]) * op.scale;
      }
    }
    multiply_columns<kHeadDim>(dqueries, scores, key_tile);
  }
  wait_copies<0>();
  store_rows<kHeadDim>(dqueries, op.out + token0 * width + head_column, width, row, op.seq_length);
}

template <int kHeadDim>
void start(cudaStream_t stream, const AttentionBackward& attention) {
  const Attention& f = attention.forward;
  AttentionOperands op = operands_of(f);
  op.dout = static_cast<const bf16*>(attention.dout.data);
  op.out = static_cast<bf16*>(attention.dqkv.data);
  op.delta = attention.delta;
  const auto blocks = static_cast<unsigned>((f.seq_length + kRows - 1) / kRows);
  const auto batch = static_cast<unsigned>(f.batch);
  constexpr std::size_t kShared = shared_bytes<kHeadDim>();
  const bool drops = f.dropout.active();
  const auto for_keys = drops ? backward_keys<kHeadDim, true> : backward_keys<kHeadDim, false>;
  const auto for_queries = drops ? backward_queries<kHeadDim, true> : backward_queries<kHeadDim, false>;
  cudaFuncSetAttribute(for_keys, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kShared));
  cudaFuncSetAttribute(for_queries, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kShared));
  for_keys<<<dim3(blocks, static_cast<unsigned>(f.kv_heads), batch), kThreads, kShared, stream>>>(op);
  for_queries<<<dim3(blocks, static_cast<unsigned>(f.heads), batch), kThreads, kShared, stream>>>(op);
}

}  // namespace

void launch_attention_backward_tensor_core(cudaStream_t stream, const AttentionBackward& attention) {
  launch_attention_delta(stream, attention);
  switch (attention.forward.head_dim) {
    case 32:
      return start<32>(stream, attention);
    case 64:
      return start<64>(stream, attention);
    case 96:
      return start<96>(stream, attention);
    default:
      return start<128>(stream, attention);
  }
}

}  // namespace capstan::runtime::cuda
