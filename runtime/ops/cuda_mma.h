// Warp-level tensor-core steps in bf16 with f32 accumulation (mma.sync m16n8k16), fragment loads from shared
// memory (ldmatrix) and asynchronous copies into it. For *.cu files only. Tiles in shared memory are
// row-major with a pitch of width + 8 elements, so that the eight rows of a fragment load fall into different
// banks.
//
// Fragments, with g = lane / 4 and c = lane % 4: an accumulator holds rows g and g + 8, columns 2c and 2c +
// 1, as
// {(g,2c), (g,2c+1), (g+8,2c), (g+8,2c+1)}. Two neighbouring accumulators, rounded to bf16, are the left
// operand of the next product.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

namespace capstan::runtime::cuda {

__device__ __forceinline__ std::uint32_t shared_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ __forceinline__ void load_matrices(std::uint32_t (&to)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}
__device__ __forceinline__ void load_matrices_transposed(std::uint32_t (&to)[4], const void* from) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(shared_address(from))
               : "memory");
}

/// sum += left (16 x 16) * right (16 x 8).
__device__ __forceinline__ void multiply(float (&sum)[4], const std::uint32_t (&left)[4],
                                         std::uint32_t right0, std::uint32_t right1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right0), "r"(right1));
}

/// Left operand: rows 0..15, columns 0..15 of a row-major tile at `tile`.
template <int kPitch>
__device__ __forceinline__ void load_left(std::uint32_t (&to)[4], const __nv_bfloat16* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(to, tile + (lane % 16) * kPitch + lane / 16 * 8);
}
/// Right operands of two products whose right matrix is the transpose of a row-major tile: its rows 0..15 are
/// the columns of the product, its columns 0..15 the inner dimension. {to[0], to[1]} for columns 0..7,
/// {to[2], to[3]} for 8..15.
template <int kPitch>
__device__ __forceinline__ void load_right_of_rows(std::uint32_t (&to)[4], const __nv_bfloat16* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices(to, tile + (lane / 16 * 8 + lane % 8) * kPitch + lane / 8 % 2 * 8);
}
/// The same for a right matrix that is the row-major tile itself: its rows are the inner dimension.
template <int kPitch>
__device__ __forceinline__ void load_right_of_columns(std::uint32_t (&to)[4], const __nv_bfloat16* tile) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  load_matrices_transposed(to, tile + (lane / 8 % 2 * 8 + lane % 8) * kPitch + lane / 16 * 8);
}

__device__ __forceinline__ std::uint32_t pack_pair(float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
/// Left operand made of two neighbouring accumulators.
__device__ __forceinline__ void pack_left(std::uint32_t (&to)[4], const float (&first)[4],
                                          const float (&second)[4]) {
  to[0] = pack_pair(first[0], first[1]);
  to[1] = pack_pair(first[2], first[3]);
  to[2] = pack_pair(second[0], second[1]);
  to[3] = pack_pair(second[2], second[3]);
}

/// 16 bytes from global to shared memory; zeros when `present` is false (nothing is read then).
__device__ __forceinline__ void copy_async(void* shared, const void* global, bool present) {
  const int bytes = present ? 16 : 0;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(bytes)
               : "memory");
}
/// One float, or zero.
__device__ __forceinline__ void copy_float_async(float* shared, const float* global, bool present) {
  const int bytes = present ? 4 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(shared_address(shared)), "l"(global),
               "r"(bytes)
               : "memory");
}
__device__ __forceinline__ void commit_copies() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}
template <int kPending>
__device__ __forceinline__ void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

__device__ __forceinline__ float exp2_fast(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

}  // namespace capstan::runtime::cuda
