#include "runtime/ops/inner_loops.h"

#include <cstring>

namespace capstan::runtime {
namespace {

#if defined(__x86_64__)
#define CAPSTAN_AVX2 __attribute__((target("avx2")))
bool has_avx2() {
  static const bool found = __builtin_cpu_supports("avx2");
  return found;
}
#else
#define CAPSTAN_AVX2
bool has_avx2() {
  return false;
}
#endif
#define CAPSTAN_INLINE inline __attribute__((always_inline))

// Thirty-two bytes of C. The compiler splits it in two where the machine has 16-byte registers.
template <typename C>
struct Lanes {
  typedef C Vector __attribute__((vector_size(32), aligned(1), may_alias));
  static constexpr std::int64_t kCount = 32 / sizeof(C);
};

template <typename C>
CAPSTAN_INLINE void multiply_tile_body(const C* a, const C* b, std::int64_t depth, C* c, std::int64_t ldc) {
  using Vector = typename Lanes<C>::Vector;
  constexpr std::int64_t kCount = Lanes<C>::kCount;
  constexpr std::int64_t kColumns = tile_columns<C>();
  static_assert(kColumns == 2 * kCount);
  Vector sums[kTileRows][2];
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    std::memcpy(&sums[i][0], c + i * ldc, 32);
    std::memcpy(&sums[i][1], c + i * ldc + kCount, 32);
  }
  for (std::int64_t p = 0; p < depth; ++p) {
    Vector left, right;
    std::memcpy(&left, b + p * kColumns, 32);
    std::memcpy(&right, b + p * kColumns + kCount, 32);
    for (std::int64_t i = 0; i < kTileRows; ++i) {
      const C factor = a[p * kTileRows + i];
      sums[i][0] += factor * left;
      sums[i][1] += factor * right;
    }
  }
  for (std::int64_t i = 0; i < kTileRows; ++i) {
    std::memcpy(c + i * ldc, &sums[i][0], 32);
    std::memcpy(c + i * ldc + kCount, &sums[i][1], 32);
  }
}

template <typename C>
CAPSTAN_INLINE void weighted_sum_body(const C* weights, const C* rows, std::int64_t stride,
                                      std::int64_t count, std::int64_t width, C* out, bool add) {
  using Vector = typename Lanes<C>::Vector;
  constexpr std::int64_t kCount = Lanes<C>::kCount;
  std::int64_t j = 0;
  for (; j + 4 * kCount <= width; j += 4 * kCount) {
    Vector sums[4] = {};
    if (add) std::memcpy(sums, out + j, sizeof sums);
    for (std::int64_t r = 0; r < count; ++r) {
      const C factor = weights[r];
      Vector values[4];
      std::memcpy(values, rows + r * stride + j, sizeof values);
      for (int v = 0; v < 4; ++v) sums[v] += factor * values[v];
    }
    std::memcpy(out + j, sums, sizeof sums);
  }
  for (; j < width; ++j) {
    C sum = add ? out[j] : C(0);
    for (std::int64_t r = 0; r < count; ++r) sum += weights[r] * rows[r * stride + j];
    out[j] = sum;
  }
}

template <typename C>
CAPSTAN_AVX2 void multiply_tile_avx2(const C* a, const C* b, std::int64_t depth, C* c, std::int64_t ldc) {
  multiply_tile_body(a, b, depth, c, ldc);
}
template <typename C>
CAPSTAN_AVX2 void weighted_sum_avx2(const C* weights, const C* rows, std::int64_t stride, std::int64_t count,
                                    std::int64_t width, C* out, bool add) {
  weighted_sum_body(weights, rows, stride, count, width, out, add);
}

}  // namespace

template <typename C>
void multiply_tile(const C* a, const C* b, std::int64_t depth, C* c, std::int64_t ldc) {
  if (has_avx2()) return multiply_tile_avx2(a, b, depth, c, ldc);
  multiply_tile_body(a, b, depth, c, ldc);
}

template <typename C>
void weighted_sum_of_rows(const C* weights, const C* rows, std::int64_t stride, std::int64_t count,
                          std::int64_t width, C* out, bool add) {
  if (has_avx2()) return weighted_sum_avx2(weights, rows, stride, count, width, out, add);
  weighted_sum_body(weights, rows, stride, count, width, out, add);
}

template void multiply_tile(const float*, const float*, std::int64_t, float*, std::int64_t);
template void multiply_tile(const double*, const double*, std::int64_t, double*, std::int64_t);
template void weighted_sum_of_rows(const float*, const float*, std::int64_t, std::int64_t, std::int64_t,
                                   float*, bool);
template void weighted_sum_of_rows(const double*, const double*, std::int64_t, std::int64_t, std::int64_t,
                                   double*, bool);

}  // namespace capstan::runtime
