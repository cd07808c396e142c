#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

#include <type_traits>

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 256;

// 1 / (1 + exp(-x)) without overflow to NaN at either end: exp(-x) may be infinite, the quotient is then 0.
__device__ __forceinline__ float sigmoid(float x) {
  return 1.0F / (1.0F + expf(-x));
}

constexpr float kGeluScale = 0.7978845608028654F;  // sqrt(2 / pi)
constexpr float kGeluCubic = 0.044715F;
constexpr float kInverseSqrt2 = 0.7071067811865476F;
constexpr float kInverseSqrt2Pi = 0.3989422804014327F;

template <bool kTanh>
__device__ __forceinline__ float gelu(float x) {
  if constexpr (kTanh) {
    return 0.5F * x * (1.0F + tanhf(kGeluScale * (x + kGeluCubic * x * x * x)));
  } else {
    return 0.5F * x * (1.0F + erff(x * kInverseSqrt2));
  }
}

template <bool kTanh>
__device__ __forceinline__ float gelu_slope(float x) {
  if constexpr (kTanh) {
    const float t = tanhf(kGeluScale * (x + kGeluCubic * x * x * x));
    const float inner = kGeluScale * (1.0F + 3.0F * kGeluCubic * x * x);
    return 0.5F * (1.0F + t) + 0.5F * x * (1.0F - t * t) * inner;
  } else {
    return 0.5F * (1.0F + erff(x * kInverseSqrt2)) + x * kInverseSqrt2Pi * expf(-0.5F * x * x);
  }
}

// Element-wise kernels take packs of N; the rest of a count that is no multiple of N is a second launch with
// N = 1.
template <typename T, int N, bool kTanh>
__global__ void gelu_forward(const T* x, T* y, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= packs) return;
  float value[N];
  load<N>(x + i * N, value);
#pragma unroll
  for (int k = 0; k < N; ++k) value[k] = gelu<kTanh>(value[k]);
  store<N>(y + i * N, value);
}

template <typename T, int N, bool kTanh>
__global__ void gelu_backward(const T* dy, const T* x, T* dx, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= packs) return;
  float value[N];
  float slope[N];
  load<N>(x + i * N, value);
  load<N>(dy + i * N, slope);
#pragma unroll
  for (int k = 0; k < N; ++k) value[k] = slope[k] * gelu_slope<kTanh>(value[k]);
  store<N>(dx + i * N, value);
}

template <typename T, int N>
__global__ void add(const T* a, const T* b, T* y, std::int64_t packs) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= packs) return;
  float left[N];
  float right[N];
  load<N>(a + i * N, left);
  load<N>(b + i * N, right);
#pragma unroll
  for (int k = 0; k < N; ++k) left[k] += right[k];
  store<N>(y + i * N, left);
}

// Thread i owns the four elements of Philox group i.
template <typename T, bool kWhole>
__global__ void dropout(const T* x, const T* residual, T* y, std::int64_t count, DropoutDraw draw,
                        const std::uint64_t* counter) {
  const std::int64_t group = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (4 * group >= count) return;
  draw.counter = *counter;
  const uint4 word = draw.words(static_cast<std::uint64_t>(group));
  const bool kept[4] = {draw.keeps(word.x), draw.keeps(word.y), draw.keeps(word.z), draw.keeps(word.w)};
  if constexpr (kWhole) {
    float value[4];
    load<4>(x + 4 * group, value);
#pragma unroll
    for (int k = 0; k < 4; ++k) value[k] = kept[k] ? value[k] * draw.scale : 0.0F;
    if (residual != nullptr) {
      float before[4];
      load<4>(residual + 4 * group, before);
#pragma unroll
      for (int k = 0; k < 4; ++k) value[k] += before[k];
    }
    store<4>(y + 4 * group, value);
  } else {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const std::int64_t i = 4 * group + k;
      if (i >= count) break;
      float value = kept[k] ? widen(x[i]) * draw.scale : 0.0F;
      if (residual != nullptr) value += widen(residual[i]);
      y[i] = narrow<T>(value);
    }
  }
}

// gate and up stand in one row: [gate 0..F | up F..2F].
template <typename T, int N>
__global__ void swiglu(const T* gate_up, T* out, std::int64_t rows, int packs_per_row) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * packs_per_row) return;
  const std::int64_t row = i / packs_per_row;
  const std::int64_t column = (i - row * packs_per_row) * N;
  const std::int64_t ffn = static_cast<std::int64_t>(packs_per_row) * N;
  float gate[N];
  float up[N];
  load<N>(gate_up + 2 * row * ffn + column, gate);
  load<N>(gate_up + (2 * row + 1) * ffn + column, up);
#pragma unroll
  for (int k = 0; k < N; ++k) gate[k] = gate[k] * sigmoid(gate[k]) * up[k];
  store<N>(out + row * ffn + column, gate);
}

template <typename T, int N>
__global__ void swiglu_backward(const T* dout, const T* gate_up, T* dgate_up, std::int64_t rows,
                                int packs_per_row) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= rows * packs_per_row) return;
  const std::int64_t row = i / packs_per_row;
  const std::int64_t column = (i - row * packs_per_row) * N;
  const std::int64_t ffn = static_cast<std::int64_t>(packs_per_row) * N;
  const std::int64_t gate_at = 2 * row * ffn + column;
  float d[N];
  float gate[N];
  float up[N];
  load<N>(dout + row * ffn + column, d);
  load<N>(gate_up + gate_at, gate);
  load<N>(gate_up + gate_at + ffn, up);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float s = sigmoid(gate[k]);
    const float silu = gate[k] * s;
    const float dgate = d[k] * up[k] * (s + silu * (1.0F - s));
    up[k] = d[k] * silu;
    gate[k] = dgate;
  }
  store<N>(dgate_up + gate_at, gate);
  store<N>(dgate_up + gate_at + ffn, up);
}

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>((items + kThreads - 1) / kThreads);
}

// Calls `body(packs of N)` for the whole packs and `body(single elements, offset)` for the rest.
template <typename T, typename Body>
void in_packs(std::int64_t count, const Body& body) {
  constexpr int N = kPack<T>;
  const std::int64_t packs = count / N;
  if (packs > 0) body(std::integral_constant<int, N>(), 0, packs);
  if (count % N != 0) body(std::integral_constant<int, 1>(), packs * N, count % N);
}

template <typename T>
void gelu_typed(cudaStream_t stream, const T* x, T* y, std::int64_t count, bool tanh_form) {
  in_packs<T>(count, [&](auto width, std::int64_t from, std::int64_t packs) {
    constexpr int N = decltype(width)::value;
    tanh_form
        ? gelu_forward<T, N, true><<<blocks_for(packs), kThreads, 0, stream>>>(x + from, y + from, packs)
        : gelu_forward<T, N, false><<<blocks_for(packs), kThreads, 0, stream>>>(x + from, y + from, packs);
  });
}

template <typename T>
void gelu_backward_typed(cudaStream_t stream, const T* dy, const T* x, T* dx, std::int64_t count,
                         bool tanh_form) {
  in_packs<T>(count, [&](auto width, std::int64_t from, std::int64_t packs) {
    constexpr int N = decltype(width)::value;
    const unsigned blocks = blocks_for(packs);
    tanh_form
        ? gelu_backward<T, N, true><<<blocks, kThreads, 0, stream>>>(dy + from, x + from, dx + from, packs)
        : gelu_backward<T, N, false><<<blocks, kThreads, 0, stream>>>(dy + from, x + from, dx + from, packs);
  });
}

template <typename T>
void add_typed(cudaStream_t stream, const T* a, const T* b, T* y, std::int64_t count) {
  in_packs<T>(count, [&](auto width, std::int64_t from, std::int64_t packs) {
    constexpr int N = decltype(width)::value;
    add<T, N><<<blocks_for(packs), kThreads, 0, stream>>>(a + from, b + from, y + from, packs);
  });
}

template <typename T>
void dropout_typed(cudaStream_t stream, const T* x, const T* residual, T* y, std::int64_t count,
                   const DropoutDraw& draw, const std::uint64_t* counter) {
  const unsigned blocks = blocks_for((count + 3) / 4);
  if (count % 4 == 0) {
    dropout<T, true><<<blocks, kThreads, 0, stream>>>(x, residual, y, count, draw, counter);
  } else {
    dropout<T, false><<<blocks, kThreads, 0, stream>>>(x, residual, y, count, draw, counter);
  }
}

template <typename T>
void swiglu_typed(cudaStream_t stream, const T* gate_up, T* out, std::int64_t rows, std::int64_t ffn) {
  constexpr int N = kPack<T>;
  if (ffn % N == 0) {
    swiglu<T, N>
        <<<blocks_for(rows * ffn / N), kThreads, 0, stream>>>(gate_up, out, rows, static_cast<int>(ffn / N));
  } else {
    swiglu<T, 1><<<blocks_for(rows * ffn), kThreads, 0, stream>>>(gate_up, out, rows, static_cast<int>(ffn));
  }
}

template <typename T>
void swiglu_backward_typed(cudaStream_t stream, const T* dout, const T* gate_up, T* dgate_up,
                           std::int64_t rows, std::int64_t ffn) {
  constexpr int N = kPack<T>;
  if (ffn % N == 0) {
    swiglu_backward<T, N><<<blocks_for(rows * ffn / N), kThreads, 0, stream>>>(dout, gate_up, dgate_up, rows,
                                                                               static_cast<int>(ffn / N));
  } else {
    swiglu_backward<T, 1><<<blocks_for(rows * ffn), kThreads, 0, stream>>>(dout, gate_up, dgate_up, rows,
                                                                           static_cast<int>(ffn));
  }
}

template <typename T>
T* as(Floats floats) {
  return static_cast<T*>(floats.data);
}

}  // namespace

void launch_gelu(cudaStream_t stream, Floats x, Floats y, std::int64_t count, bool tanh_form) {
  x.storage == Storage::bf16 ? gelu_typed(stream, as<bf16>(x), as<bf16>(y), count, tanh_form)
                             : gelu_typed(stream, as<float>(x), as<float>(y), count, tanh_form);
}

void launch_gelu_backward(cudaStream_t stream, Floats dy, Floats x, Floats dx, std::int64_t count,
                          bool tanh_form) {
  x.storage == Storage::bf16
      ? gelu_backward_typed(stream, as<bf16>(dy), as<bf16>(x), as<bf16>(dx), count, tanh_form)
      : gelu_backward_typed(stream, as<float>(dy), as<float>(x), as<float>(dx), count, tanh_form);
}

void launch_add(cudaStream_t stream, Floats a, Floats b, Floats y, std::int64_t count) {
  a.storage == Storage::bf16 ? add_typed(stream, as<bf16>(a), as<bf16>(b), as<bf16>(y), count)
                             : add_typed(stream, as<float>(a), as<float>(b), as<float>(y), count);
}

void launch_dropout(cudaStream_t stream, Floats x, Floats residual, Floats y, std::int64_t count,
                    const Dropout& dropout) {
  const DropoutDraw draw = make_draw(dropout);
  x.storage == Storage::bf16
      ? dropout_typed(stream, as<bf16>(x), as<bf16>(residual), as<bf16>(y), count, draw, dropout.counter)
      : dropout_typed(stream, as<float>(x), as<float>(residual), as<float>(y), count, draw, dropout.counter);
}

void launch_swiglu(cudaStream_t stream, Floats gate_up, Floats out, std::int64_t rows, std::int64_t ffn) {
  out.storage == Storage::bf16 ? swiglu_typed(stream, as<bf16>(gate_up), as<bf16>(out), rows, ffn)
                               : swiglu_typed(stream, as<float>(gate_up), as<float>(out), rows, ffn);
}

void launch_swiglu_backward(cudaStream_t stream, Floats dout, Floats gate_up, Floats dgate_up,
                            std::int64_t rows, std::int64_t ffn) {
  dout.storage == Storage::bf16
      ? swiglu_backward_typed(stream, as<bf16>(dout), as<bf16>(gate_up), as<bf16>(dgate_up), rows, ffn)
      : swiglu_backward_typed(stream, as<float>(dout), as<float>(gate_up), as<float>(dgate_up), rows, ffn);
}

}  // namespace capstan::runtime::cuda
