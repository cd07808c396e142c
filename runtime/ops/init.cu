#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void fill(AnyFloat out, std::int64_t count, float value) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < count) out.set(i, value);
}

// One thread makes the four normals of one Philox block. f64 throughout, as the host does it.
__global__ void normal(AnyFloat out, std::int64_t count, uint2 key, std::uint64_t stream, double stddev) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (4 * group >= count) return;
  const uint4 word = philox(
      make_uint4(static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32),
                 static_cast<std::uint32_t>(stream), static_cast<std::uint32_t>(stream >> 32) | 0x80000000U),
      key);
  const std::uint32_t words[4] = {word.x, word.y, word.z, word.w};
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const double u1 = (static_cast<double>(words[2 * pair]) + 1.0) / 4294967296.0;
    const double u2 = static_cast<double>(words[2 * pair + 1]) / 4294967296.0;
    const double radius = sqrt(-2.0 * log(u1));
    double sine;
    double cosine;
    sincos(6.283185307179586476925286766559 * u2, &sine, &cosine);
    const std::int64_t element = 4 * group + 2 * pair;
    if (element < count) out.set(element, static_cast<float>(stddev * (radius * cosine)));
    if (element + 1 < count) out.set(element + 1, static_cast<float>(stddev * (radius * sine)));
  }
}

AnyFloat any(Floats floats) {
  return {floats.data, floats.storage == Storage::bf16};
}

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

}  // namespace

void launch_fill(cudaStream_t stream, Floats out, std::int64_t count, float value) {
  fill<<<blocks_for(count), kThreads, 0, stream>>>(any(out), count, value);
}

void launch_normal(cudaStream_t stream, Floats out, std::int64_t count, std::uint64_t seed,
                   std::uint64_t rng_stream, double stddev) {
  const uint2 key = make_uint2(static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
  normal<<<blocks_for((count + 3) / 4), kThreads, 0, stream>>>(any(out), count, key, rng_stream, stddev);
}

}  // namespace capstan::runtime::cuda
