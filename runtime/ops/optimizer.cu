#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int N = 8;  // elements a thread handles at once: 16 bytes of bf16, 32 of f32

template <typename T>
__device__ __forceinline__ void load_eight(const T* from, float (&to)[N]) {
  if constexpr (sizeof(T) == 2) {
    load<N>(from, to);
  } else {
    const float4 low = reinterpret_cast<const float4*>(from)[0];
    const float4 high = reinterpret_cast<const float4*>(from)[1];
    to[0] = low.x, to[1] = low.y, to[2] = low.z, to[3] = low.w;
    to[4] = high.x, to[5] = high.y, to[6] = high.z, to[7] = high.w;
  }
}

__device__ __forceinline__ void store_eight(float* to, const float (&from)[N]) {
  reinterpret_cast<float4*>(to)[0] = make_float4(from[0], from[1], from[2], from[3]);
  reinterpret_cast<float4*>(to)[1] = make_float4(from[4], from[5], from[6], from[7]);
}

struct Coefficients {
  float rate, beta1, beta2, one_minus_beta1, one_minus_beta2, inverse_correction1, inverse_root_correction2,
      epsilon, decay, gradient_scale;
};

__device__ __forceinline__ float updated(const Coefficients& c, float weight, float gradient, float& m,
                                         float& v) {
  gradient *= c.gradient_scale;
  m = c.beta1 * m + c.one_minus_beta1 * gradient;
  v = c.beta2 * v + c.one_minus_beta2 * gradient * gradient;
  const float denominator = sqrtf(v) * c.inverse_root_correction2 + c.epsilon;
  return weight - c.rate * (m * c.inverse_correction1 / denominator + c.decay * weight);
}

// One block per chunk of one tensor. Buffers start at 256-byte boundaries, so whole groups of eight are
// aligned.
__global__ void __launch_bounds__(kThreads)
    adamw(const OptimizerTensor* tensors, const TensorChunk* chunks, AdamW op, const float* learning_rate,
          const std::int64_t* step, const float* grad_norm, const std::int32_t* nonfinite) {
  if (*nonfinite != 0) return;
  const TensorChunk chunk = chunks[blockIdx.x];
  const OptimizerTensor tensor = tensors[chunk.tensor];
  __shared__ Coefficients shared;
  if (threadIdx.x == 0) {
    const double t = static_cast<double>(*step + 1);
    const double norm = *grad_norm;
    shared.rate = *learning_rate;
    shared.beta1 = static_cast<float>(op.beta1);
    shared.beta2 = static_cast<float>(op.beta2);
    shared.one_minus_beta1 = static_cast<float>(1.0 - op.beta1);
    shared.one_minus_beta2 = static_cast<float>(1.0 - op.beta2);
    shared.inverse_correction1 = static_cast<float>(1.0 / (1.0 - pow(op.beta1, t)));
    shared.inverse_root_correction2 = static_cast<float>(1.0 / sqrt(1.0 - pow(op.beta2, t)));
    shared.epsilon = op.epsilon;
    shared.decay = op.weight_decay;
    shared.gradient_scale =
        op.clip_grad > 0.0 && norm > op.clip_grad ? static_cast<float>(op.clip_grad / (norm + 1e-6)) : 1.0F;
  }
  __syncthreads();
  const Coefficients c = shared;
  const std::int64_t first = chunk.chunk * kChunkElements;
  const std::int64_t end = min(first + kChunkElements, tensor.count);
  const bool narrow_gradient = tensor.gradient_storage == Storage::bf16;
  const bool narrow_parameter = tensor.parameter_storage == Storage::bf16;
  float* master = tensor.master != nullptr ? tensor.master : static_cast<float*>(tensor.parameter);
  for (std::int64_t i = first + static_cast<std::int64_t>(threadIdx.x) * N; i < end; i += kThreads * N) {
    if (i + N <= end) {
      float weight[N];
      float gradient[N];
      float m[N];
      float v[N];
      load_eight(master + i, weight);
      if (narrow_gradient) {
        load_eight(static_cast<const bf16*>(tensor.gradient) + i, gradient);
      } else {
        load_eight(static_cast<const float*>(tensor.gradient) + i, gradient);
      }
      load_eight(tensor.moment1 + i, m);
      load_eight(tensor.moment2 + i, v);
#pragma unroll
      for (int k = 0; k < N; ++k) weight[k] = updated(c, weight[k], gradient[k], m[k], v[k]);
      store_eight(master + i, weight);
      store_eight(tensor.moment1 + i, m);
      store_eight(tensor.moment2 + i, v);
      if (narrow_parameter) store<N>(static_cast<bf16*>(tensor.parameter) + i, weight);
    } else {
      for (std::int64_t j = i; j < end; ++j) {
        const float gradient = narrow_gradient ? widen(static_cast<const bf16*>(tensor.gradient)[j])
                                               : static_cast<const float*>(tensor.gradient)[j];
        float m = tensor.moment1[j];
        float v = tensor.moment2[j];
        const float weight = updated(c, master[j], gradient, m, v);
        master[j] = weight;
        tensor.moment1[j] = m;
        tensor.moment2[j] = v;
        if (narrow_parameter) static_cast<bf16*>(tensor.parameter)[j] = narrow<bf16>(weight);
      }
    }
  }
}

__device__ __forceinline__ float sum_of_squares(const OptimizerTensor& tensor, std::int64_t first,
                                                std::int64_t end) {
  float sum = 0.0F;
  const bool narrow_gradient = tensor.gradient_storage == Storage::bf16;
  for (std::int64_t i = first + static_cast<std::int64_t>(threadIdx.x) * N; i < end; i += kThreads * N) {
    if (i + N <= end) {
      float value[N];
      if (narrow_gradient) {
        load_eight(static_cast<const bf16*>(tensor.gradient) + i, value);
      } else {
        load_eight(static_cast<const float*>(tensor.gradient) + i, value);
      }
#pragma unroll
      for (int k = 0; k < N; ++k) sum += value[k] * value[k];
    } else {
      for (std::int64_t j = i; j < end; ++j) {
        const float value = narrow_gradient ? widen(static_cast<const bf16*>(tensor.gradient)[j])
                                            : static_cast<const float*>(tensor.gradient)[j];
        sum += value * value;
      }
    }
  }
  return sum;
}

// Block b sums chunks b, b + grid, ...; the order depends on the grid alone.
__global__ void __launch_bounds__(kThreads) squares(const OptimizerTensor* tensors, const TensorChunk* chunks,
                                                    std::int64_t chunk_count, float* partial) {
  __shared__ float scratch[kWarp];
  float sum = 0.0F;
  for (std::int64_t c = blockIdx.x; c < chunk_count; c += gridDim.x) {
    const TensorChunk chunk = chunks[c];
    const OptimizerTensor tensor = tensors[chunk.tensor];
    const std::int64_t first = chunk.chunk * kChunkElements;
    sum += sum_of_squares(tensor, first, min(first + kChunkElements, tensor.count));
  }
  sum = reduce_block(sum, Sum(), scratch);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void __launch_bounds__(1024)
    root_of_sum(const float* partial, int count, float* grad_norm, std::int32_t* nonfinite) {
  __shared__ float scratch[kWarp];
  float sum = 0.0F;
  for (int i = threadIdx.x; i < count; i += 1024) sum += partial[i];
  sum = reduce_block(sum, Sum(), scratch);
  if (threadIdx.x != 0) return;
  const float norm = sqrtf(sum);
  *grad_norm = norm;
  if (!isfinite(norm)) *nonfinite |= 2;
}

}  // namespace

void launch_adamw(cudaStream_t stream, const OptimizerTensor* tensors, const TensorChunk* chunks,
                  std::int64_t chunk_count, const AdamW& adamw_op, const float* learning_rate,
                  const std::int64_t* step, const float* grad_norm, const std::int32_t* nonfinite) {
  adamw<<<static_cast<unsigned>(chunk_count), kThreads, 0, stream>>>(tensors, chunks, adamw_op, learning_rate,
                                                                     step, grad_norm, nonfinite);
}

void launch_grad_norm(cudaStream_t stream, const OptimizerTensor* tensors, const TensorChunk* chunks,
                      std::int64_t chunk_count, float* partial, std::int64_t partial_floats, float* grad_norm,
                      std::int32_t* nonfinite) {
  std::int64_t blocks = chunk_count;
  if (blocks > kGradNormBlocks) blocks = kGradNormBlocks;
  if (blocks > partial_floats) blocks = partial_floats;
  squares<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(tensors, chunks, chunk_count, partial);
  root_of_sum<<<1, 1024, 0, stream>>>(partial, static_cast<int>(blocks), grad_norm, nonfinite);
}

}  // namespace capstan::runtime::cuda
