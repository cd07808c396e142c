// What the forward and backward tensor-core attention kernels share: the operands, tile copies and dropout
// decisions in fragment layout. For *.cu files only.
#pragma once

#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_mma.h"

namespace capstan::runtime::cuda {

inline constexpr float kLog2E = 1.4426950408889634F;
inline constexpr float kLn2 = 0.6931471805599453F;

struct AttentionOperands {
  const bf16* qkv = nullptr;
  const bf16* dout = nullptr;  ///< backward only
  bf16* out = nullptr;         ///< forward: o; backward: dqkv
  float* lse = nullptr;
  const float* delta = nullptr;
  const std::uint64_t* counter = nullptr;
  DropoutDraw draw;
  int seq_length = 0, heads = 0, kv_heads = 0;
  float scale = 1.0F;
  bool causal = true;
};

inline AttentionOperands operands_of(const Attention& attention) {
  AttentionOperands op;
  op.qkv = static_cast<const bf16*>(attention.qkv.data);
  op.out = static_cast<bf16*>(attention.out.data);
  op.lse = attention.lse;
  op.counter = attention.dropout.counter;
  op.draw = make_draw(attention.dropout);
  op.seq_length = static_cast<int>(attention.seq_length);
  op.heads = static_cast<int>(attention.heads);
  op.kv_heads = static_cast<int>(attention.kv_heads);
  op.scale = attention.scale;
  op.causal = attention.causal;
  return op;
}

/// Starts copying rows first .. first + kCount of a head's columns to a tile; rows from `limit` on become
/// zeros.
template <int kCount, int kHeadDim, int kThreads>
__device__ __forceinline__ void copy_tile(bf16* tile, const bf16* matrix, std::int64_t width, int first,
                                          int limit) {
  constexpr int kPacks = kHeadDim / 8;
  constexpr int kPitch = kHeadDim + 8;
#pragma unroll
  for (int i = 0; i < kCount * kPacks / kThreads; ++i) {
    const int item = static_cast<int>(threadIdx.x) + i * kThreads;
    const int row = item / kPacks;
    const int column = item % kPacks * 8;
    const bool present = first + row < limit;
    copy_async(tile + row * kPitch + column, matrix + (present ? first + row : 0) * width + column, present);
  }
  static_assert(kCount * kPacks % kThreads == 0);
}

/// Four keep bits of the Philox group that holds element 4 * group.
__device__ __forceinline__ unsigned keep_bits(const DropoutDraw& draw, std::uint64_t group) {
  const uint4 word = draw.words(group);
  return static_cast<unsigned>(draw.keeps(word.x)) | static_cast<unsigned>(draw.keeps(word.y)) << 1 |
         static_cast<unsigned>(draw.keeps(word.z)) << 2 | static_cast<unsigned>(draw.keeps(word.w)) << 3;
}

/// Keep bits of one accumulator whose rows are queries and whose columns are keys: bit i belongs to element i
/// of the fragment. `row_element` is the number of the element (query of row g, key 0) and `next_row` that of
/// (row g + 8, key 0); `column` is the key of the tile's first column, a multiple of 8. A Philox group covers
/// four neighbouring keys, which two lanes hold: one of them draws for row g, the other for row g + 8. Needs
/// seq_length % 4 == 0.
__device__ __forceinline__ unsigned keep_bits_by_query(const DropoutDraw& draw, std::uint64_t row_element,
                                                       std::uint64_t next_row, int column) {
  const int c = static_cast<int>(threadIdx.x) % 4;
  const bool odd = c % 2 != 0;
  const std::uint64_t element =
      (odd ? next_row : row_element) + static_cast<std::uint64_t>(column + c / 2 * 4);
  const unsigned own = keep_bits(draw, element / 4);
  const unsigned other = __shfl_xor_sync(0xffffffffU, own, 1);
  const unsigned first = odd ? other : own;   // group of row g
  const unsigned second = odd ? own : other;  // group of row g + 8
  const int shift = odd ? 2 : 0;
  return (first >> shift & 3U) | (second >> shift & 3U) << 2;
}

/// The same for an accumulator whose rows are keys and whose columns are queries. `key` is the key of row g
/// == 0, a multiple of 16; `query_element` the number of the element (query of column 2c, key 0); queries are
/// seq_length apart. A group covers the keys of four lanes, each of which draws one of the four groups that
/// they need.
__device__ __forceinline__ unsigned keep_bits_by_key(const DropoutDraw& draw, std::uint64_t query_element,
                                                     int key, int seq_length) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int g = lane / 4;
  const int turn = g % 4;  // 0: (rows g, column 2c), 1: (g, 2c+1), 2: (g+8, 2c), 3: (g+8, 2c+1)
  const std::uint64_t element = query_element + static_cast<std::uint64_t>(turn % 2 * seq_length) +
                                static_cast<std::uint64_t>(key + g / 4 * 4 + turn / 2 * 8);
  const unsigned own = keep_bits(draw, element / 4);
  unsigned bits = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const unsigned group = __shfl_sync(0xffffffffU, own, (lane & ~12) | i << 2);
    bits |= (group >> turn & 1U) << i;
  }
  return bits;
}

}  // namespace capstan::runtime::cuda
