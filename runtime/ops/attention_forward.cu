// Flash-style attention forward on the tensor cores: a block owns 64 queries of one head, four warps of 16
// rows; keys and values come in tiles of 64 through a two-stage asynchronous pipeline; the softmax is made
// online in base 2.
#include "runtime/ops/cuda_attention_tile.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kQueries = 64;
constexpr int kKeys = 64;

template <int kHeadDim>
constexpr std::size_t shared_bytes() {
  return static_cast<std::size_t>(kQueries + 4 * kKeys) * (kHeadDim + 8) * sizeof(bf16);
}

template <int kHeadDim, bool kDrops>
__global__ void __launch_bounds__(kThreads) forward(AttentionOperands op) {
  constexpr int kPitch = kHeadDim + 8;
  constexpr int kSteps = kHeadDim / 16;  // inner steps of q k
  constexpr int kTile = kKeys * kPitch;
  extern __shared__ __align__(16) bf16 shared[];
  bf16* queries = shared;
  bf16* keys = queries + kQueries * kPitch;  // two stages
  bf16* values = keys + 2 * kTile;           // two stages

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4;
  const int c = lane % 4;
  const int head = blockIdx.y;
  const int batch = blockIdx.z;
  // The last queries see the most keys; they start first.
  const int first = static_cast<int>(gridDim.x - 1 - blockIdx.x) * kQueries;
  const std::int64_t width = static_cast<std::int64_t>(op.heads + 2 * op.kv_heads) * kHeadDim;
  const bf16* matrix = op.qkv + static_cast<std::int64_t>(batch) * op.seq_length * width;
  const int kv = head / (op.heads / op.kv_heads);
  const bf16* key_matrix = matrix + static_cast<std::int64_t>(op.heads + kv) * kHeadDim;
  const bf16* value_matrix = matrix + static_cast<std::int64_t>(op.heads + op.kv_heads + kv) * kHeadDim;
  DropoutDraw draw = op.draw;
  if constexpr (kDrops) draw.counter = *op.counter;

  copy_tile<kQueries, kHeadDim, kThreads>(queries, matrix + static_cast<std::int64_t>(head) * kHeadDim, width,
                                          first, op.seq_length);
  copy_tile<kKeys, kHeadDim, kThreads>(keys, key_matrix, width, 0, op.seq_length);
  commit_copies();
  copy_tile<kKeys, kHeadDim, kThreads>(values, value_matrix, width, 0, op.seq_length);
  commit_copies();

  const int row = first + warp * 16 + g;  // and row + 8
  const float log2_scale = op.scale * kLog2E;
  float sums[kHeadDim / 8][4] = {};
  float largest[2] = {-INFINITY, -INFINITY};
  float total[2] = {0.0F, 0.0F};
  std::uint32_t q[kSteps][4];

  const int end = op.causal ? min(first + kQueries, op.seq_length) : op.seq_length;
  const int tiles = (end + kKeys - 1) / kKeys;
  for (int tile = 0; tile < tiles; ++tile) {
    const int key0 = tile * kKeys;
    const bf16* key_tile = keys + tile % 2 * kTile;
    const bf16* value_tile = values + tile % 2 * kTile;
    wait_copies<1>();  // this tile's keys (and the queries) are there; its values may be on their way
    __syncthreads();   // everybody is done with the tile before the last, whose place the next one takes
    if (tile == 0) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step)
        load_left<kPitch>(q[step], queries + warp * 16 * kPitch + step * 16);
    }
    if (tile + 1 < tiles) {
      copy_tile<kKeys, kHeadDim, kThreads>(keys + (tile + 1) % 2 * kTile, key_matrix, width, key0 + kKeys,
                                           op.seq_length);
    }
    commit_copies();

    float scores[kKeys / 8][4] = {};
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
#pragma unroll
      for (int n = 0; n < kKeys / 16; ++n) {
        std::uint32_t right[4];
        load_right_of_rows<kPitch>(right, key_tile + n * 16 * kPitch + step * 16);
        multiply(scores[2 * n], q[step], right[0], right[1]);
        multiply(scores[2 * n + 1], q[step], right[2], right[3]);
      }
    }
    // Only tiles that reach the diagonal or the sequence's end have something to hide.
    const bool hides = key0 + kKeys > op.seq_length || (op.causal && key0 + kKeys > first + warp * 16 + 1);
    float tile_largest[2] = {-INFINITY, -INFINITY};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (hides) {
          const int key = key0 + n * 8 + c * 2 + i % 2;
          if (key >= op.seq_length || (op.causal && key > row + i / 2 * 8)) scores[n][i] = -INFINITY;
        }
        tile_largest[i / 2] = fmaxf(tile_largest[i / 2], scores[n][i]);
      }
    }
    float shift[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float most = tile_largest[half];
      most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 1));
      most = fmaxf(most, __shfl_xor_sync(0xffffffffU, most, 2));
      const float next = fmaxf(largest[half], most * log2_scale);
      const float shrink = exp2_fast(largest[half] - next);
      largest[half] = next;
      shift[half] = next;
      total[half] *= shrink;
#pragma unroll
      for (int n = 0; n < kHeadDim / 8; ++n) {
        sums[n][2 * half] *= shrink;
        sums[n][2 * half + 1] *= shrink;
      }
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[n][i] = exp2_fast(fmaf(scores[n][i], log2_scale, -shift[i / 2]));
        total[i / 2] += scores[n][i];
      }
    }
    if constexpr (kDrops) {
      const std::uint64_t heads_row = static_cast<std::uint64_t>(batch * op.heads + head) * op.seq_length;
      const std::uint64_t element = (heads_row + row) * op.seq_length;
      const std::uint64_t next_row = element + 8ULL * op.seq_length;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        const unsigned bits = keep_bits_by_query(draw, element, next_row, key0 + n * 8);
#pragma unroll
        for (int i = 0; i < 4; ++i) scores[n][i] = (bits >> i & 1U) != 0 ? scores[n][i] : 0.0F;
      }
    }

    wait_copies<1>();  // the values of this tile
    __syncthreads();
    if (tile + 1 < tiles) {
      copy_tile<kKeys, kHeadDim, kThreads>(values + (tile + 1) % 2 * kTile, value_matrix, width, key0 + kKeys,
                                           op.seq_length);
    }
    commit_copies();
#pragma unroll
    for (int step = 0; step < kKeys / 16; ++step) {
      std::uint32_t left[4];
      pack_left(left, scores[2 * step], scores[2 * step + 1]);
#pragma unroll
      for (int n = 0; n < kHeadDim / 16; ++n) {
        std::uint32_t right[4];
        load_right_of_columns<kPitch>(right, value_tile + step * 16 * kPitch + n * 16);
        multiply(sums[2 * n], left, right[0], right[1]);
        multiply(sums[2 * n + 1], left, right[2], right[3]);
      }
    }
  }
  wait_copies<0>();

#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = total[half];
    sum += __shfl_xor_sync(0xffffffffU, sum, 1);
    sum += __shfl_xor_sync(0xffffffffU, sum, 2);
    const int query = row + half * 8;
    if (query >= op.seq_length) continue;
    const float factor = (kDrops ? draw.scale : 1.0F) / sum;
    bf16* out =
        op.out + ((static_cast<std::int64_t>(batch) * op.seq_length + query) * op.heads + head) * kHeadDim;
#pragma unroll
    for (int n = 0; n < kHeadDim / 8; ++n) {
      *reinterpret_cast<std::uint32_t*>(out + n * 8 + c * 2) =
          pack_pair(sums[n][2 * half] * factor, sums[n][2 * half + 1] * factor);
    }
    if (c == 0) {
      op.lse[(static_cast<std::int64_t>(batch) * op.heads + head) * op.seq_length + query] =
          (largest[half] + log2f(sum)) * kLn2;
    }
  }
}

template <int kHeadDim>
void start(cudaStream_t stream, const Attention& attention) {
  const AttentionOperands op = operands_of(attention);
  const dim3 grid(static_cast<unsigned>((attention.seq_length + kQueries - 1) / kQueries),
                  static_cast<unsigned>(attention.heads), static_cast<unsigned>(attention.batch));
  constexpr std::size_t kShared = shared_bytes<kHeadDim>();
  const auto kernel = attention.dropout.active() ? forward<kHeadDim, true> : forward<kHeadDim, false>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(kShared));
  kernel<<<grid, kThreads, kShared, stream>>>(op);
}

}  // namespace

bool attention_tensor_core_supports(const Attention& attention) {
  const std::int64_t d = attention.head_dim;
  return attention.qkv.storage == Storage::bf16 && (d == 32 || d == 64 || d == 96 || d == 128) &&
         (!attention.dropout.active() || attention.seq_length % 4 == 0);
}

void launch_attention_tensor_core(cudaStream_t stream, const Attention& attention) {
  switch (attention.head_dim) {
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
