// Device-side building blocks of the kernels: 16-byte packs, widening and rounding, reductions in a fixed
// order, Philox. For *.cu files only. Storage types are float and __nv_bfloat16; arithmetic is float. Every
// reduction here adds in an order that depends only on the launch shape, so results are the same from run to
// run.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {

using bf16 = __nv_bfloat16;

inline constexpr int kWarp = 32;

__device__ __forceinline__ float widen(float value) {
  return value;
}
__device__ __forceinline__ float widen(bf16 value) {
  return __bfloat162float(value);
}
template <typename T>
__device__ __forceinline__ T narrow(float value);
template <>
__device__ __forceinline__ float narrow<float>(float value) {
  return value;
}
template <>
__device__ __forceinline__ bf16 narrow<bf16>(float value) {
  return __float2bfloat16_rn(value);
}

/// Elements of T in one 16-byte access.
template <typename T>
inline constexpr int kPack = 16 / static_cast<int>(sizeof(T));

/// N elements moved by one access (16 bytes when N is kPack<T>; one element when N is 1), widened to float.
template <typename T, int N>
struct alignas(sizeof(T) * N) Pack {
  T element[N];
};
template <int N, typename T>
__device__ __forceinline__ void load(const T* from, float (&to)[N]) {
  const Pack<T, N> pack = *reinterpret_cast<const Pack<T, N>*>(from);
#pragma unroll
  for (int i = 0; i < N; ++i) to[i] = widen(pack.element[i]);
}
template <int N, typename T>
__device__ __forceinline__ void store(T* to, const float (&from)[N]) {
  Pack<T, N> pack;
#pragma unroll
  for (int i = 0; i < N; ++i) pack.element[i] = narrow<T>(from[i]);
  *reinterpret_cast<Pack<T, N>*>(to) = pack;
}

/// A small operand whose dtype is only known at run time (weights of a norm, biases, gradients of both): the
/// branch is uniform over the grid.
struct AnyFloat {
  void* data = nullptr;
  bool narrow_storage = false;  ///< bf16; otherwise f32
  __device__ __forceinline__ float at(std::int64_t i) const {
    return narrow_storage ? widen(static_cast<const bf16*>(data)[i]) : static_cast<const float*>(data)[i];
  }
  __device__ __forceinline__ void set(std::int64_t i, float value) const {
    if (narrow_storage) {
      static_cast<bf16*>(data)[i] = narrow<bf16>(value);
    } else {
      static_cast<float*>(data)[i] = value;
    }
  }
  template <int N>
  __device__ __forceinline__ void load(std::int64_t i, float (&to)[N]) const {
    if (narrow_storage) {
      cuda::load<N>(static_cast<const bf16*>(data) + i, to);
    } else {
#pragma unroll
      for (int k = 0; k < N; ++k) to[k] = static_cast<const float*>(data)[i + k];
    }
  }
};

struct Sum {
  static constexpr float kIdentity = 0.0F;
  __device__ __forceinline__ float operator()(float a, float b) const { return a + b; }
};
struct Max {
  static constexpr float kIdentity = -INFINITY;
  __device__ __forceinline__ float operator()(float a, float b) const { return fmaxf(a, b); }
};

/// Every lane gets the result over the warp's 32 lanes.
template <typename Combine>
__device__ __forceinline__ float reduce_warp(float value, Combine combine) {
#pragma unroll
  for (int offset = kWarp / 2; offset > 0; offset /= 2) {
    value = combine(value, __shfl_xor_sync(0xffffffffU, value, offset));
  }
  return value;
}

/// Every thread gets the result over the block. `scratch` holds 32 floats; it may be used again after the
/// call.
template <typename Combine>
__device__ __forceinline__ float reduce_block(float value, Combine combine, float* scratch) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int warp = static_cast<int>(threadIdx.x) / kWarp;
  const int warps = (static_cast<int>(blockDim.x) + kWarp - 1) / kWarp;
  value = reduce_warp(value, combine);
  if (lane == 0) scratch[warp] = value;
  __syncthreads();
  value = lane < warps ? scratch[lane] : Combine::kIdentity;
  value = reduce_warp(value, combine);
  __syncthreads();
  return value;
}

/// True, for every thread, in the block that is the last of `blocks` to get here; it then sees what the
/// others wrote to global memory before. The ticket counts up to `blocks` and starts again at 0, so it serves
/// every launch. Sums that the last block makes do not depend on which one it is.
__device__ __forceinline__ bool is_last_block(unsigned* ticket, unsigned blocks) {
  __shared__ bool last;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && threadIdx.y == 0) last = atomicInc(ticket, blocks - 1) == blocks - 1;
  __syncthreads();
  if (last) __threadfence();
  return last;
}

/// Philox4x32-10 as docs/plan-format.md states it.
__device__ __forceinline__ uint4 philox(uint4 counter, uint2 key) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53U;
  constexpr std::uint32_t kMultiplier1 = 0xCD9E8D57U;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9U;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85U;
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const std::uint32_t high0 = __umulhi(kMultiplier0, counter.x);
    const std::uint32_t low0 = kMultiplier0 * counter.x;
    const std::uint32_t high1 = __umulhi(kMultiplier1, counter.z);
    const std::uint32_t low1 = kMultiplier1 * counter.z;
    counter = make_uint4(high1 ^ counter.y ^ key.x, low1, high0 ^ counter.w ^ key.y, low0);
    key.x += kWeyl0;
    key.y += kWeyl1;
  }
  return counter;
}

/// The dropout decisions of one op at one value of the counter.
struct DropoutDraw {
  uint2 key = {0, 0};
  std::uint32_t offset = 0;
  std::uint32_t threshold = 0;  ///< floor(p * 2^32); an element is kept when its word is not below it
  float scale = 1.0F;           ///< 1 / (1 - p)
  std::uint64_t counter = 0;

  /// Words of elements 4 * group .. 4 * group + 3.
  __device__ __forceinline__ uint4 words(std::uint64_t group) const {
    return philox(
        make_uint4(static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32) ^ offset,
                   static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32)),
        key);
  }
  __device__ __forceinline__ bool keeps(std::uint32_t word) const { return word >= threshold; }
  __device__ __forceinline__ bool keeps_element(std::uint64_t element) const {
    const uint4 four = words(element / 4);
    const std::uint32_t low = element % 2 == 0 ? four.x : four.y;
    const std::uint32_t high = element % 2 == 0 ? four.z : four.w;
    return keeps(element % 4 < 2 ? low : high);
  }
};

inline DropoutDraw make_draw(const Dropout& dropout) {
  DropoutDraw draw;
  draw.key =
      make_uint2(static_cast<std::uint32_t>(dropout.seed), static_cast<std::uint32_t>(dropout.seed >> 32));
  draw.offset = dropout.offset;
  draw.threshold = static_cast<std::uint32_t>(dropout.p * 4294967296.0);
  draw.scale = static_cast<float>(1.0 / (1.0 - dropout.p));
  return draw;
}

}  // namespace capstan::runtime::cuda
