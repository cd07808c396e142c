// The loops that carry the time of the host ops, for float and double, in AVX2 where the machine has it and
// plain x86-64 elsewhere. The order of every sum is fixed by the text, without fused multiply-add, so both
// give the same bits.
#pragma once

#include <cstdint>

namespace capstan::runtime {

/// out[j] (=, or += when `add`) sum over r < count of weights[r] * rows[r * stride + j], j < width; r in
/// order.
template <typename C>
void weighted_sum_of_rows(const C* weights, const C* rows, std::int64_t stride, std::int64_t count,
                          std::int64_t width, C* out, bool add);

/// A tile of a matrix product: c[i * ldc + j] += sum over p < depth of a[p * kTileRows + i] * b[p *
/// tile_columns + j], i < kTileRows, j < tile_columns<C>(); p in order.
inline constexpr std::int64_t kTileRows = 4;
template <typename C>
constexpr std::int64_t tile_columns() {
  return 64 / static_cast<std::int64_t>(sizeof(C));
}
template <typename C>
void multiply_tile(const C* a, const C* b, std::int64_t depth, C* c, std::int64_t ldc);

/// Sixteen partial sums, then added in a fixed tree; for sums along a row.
template <typename C, typename Term>
inline C sum_in_lanes(std::int64_t count, Term term) {
  constexpr std::int64_t kLanes = 16;
  C lanes[kLanes] = {};
  std::int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::int64_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(i + lane);
  }
  for (std::int64_t lane = 0; i < count; ++i, ++lane) lanes[lane] += term(i);
  for (std::int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (std::int64_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
  }
  return lanes[0];
}

}  // namespace capstan::runtime
