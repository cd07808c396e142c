#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 128;

struct Shape {
  std::int64_t seq_length;
  int rotated_heads, head_dim, half, row_width;  ///< half: rotary_dim / 2; row_width: elements of a qkv row
  double log2_base;
  bool inverse;
};

// One block per token: the angles of its position are made once, in f64 so that long positions keep their
// precision, and serve all heads. N is the number of pairs that a thread turns at once.
template <typename T, int N, bool kInterleaved>
__global__ void rotate(T* qkv, Shape shape) {
  extern __shared__ float angles[];  // cosines [half], sines [half]
  const std::int64_t token = blockIdx.x;
  const double position = static_cast<double>(token % shape.seq_length);
  for (int i = threadIdx.x; i < shape.half; i += kThreads) {
    const double angle = position * exp2(-(static_cast<double>(i) / shape.half) * shape.log2_base);
    double sine;
    double cosine;
    sincos(angle, &sine, &cosine);
    angles[i] = static_cast<float>(cosine);
    angles[shape.half + i] = static_cast<float>(shape.inverse ? -sine : sine);
  }
  __syncthreads();
  T* row = qkv + token * shape.row_width;
  const int per_head = shape.half / N;
  for (int item = threadIdx.x; item < shape.rotated_heads * per_head; item += kThreads) {
    const int head = item / per_head;
    const int pair = (item % per_head) * N;
    T* at = row + head * shape.head_dim;
    float first[N];
    float second[N];
    if constexpr (kInterleaved) {
      float both[2 * N];
      load<2 * N>(at + 2 * pair, both);
#pragma unroll
      for (int k = 0; k < N; ++k) {
        first[k] = both[2 * k];
        second[k] = both[2 * k + 1];
      }
    } else {
      load<N>(at + pair, first);
      load<N>(at + shape.half + pair, second);
    }
    float turned_first[N];
    float turned_second[N];
#pragma unroll
    for (int k = 0; k < N; ++k) {
      const float cosine = angles[pair + k];
      const float sine = angles[shape.half + pair + k];
      turned_first[k] = first[k] * cosine - second[k] * sine;
      turned_second[k] = second[k] * cosine + first[k] * sine;
    }
    if constexpr (kInterleaved) {
      float both[2 * N];
#pragma unroll
      for (int k = 0; k < N; ++k) {
        both[2 * k] = turned_first[k];
        both[2 * k + 1] = turned_second[k];
      }
      store<2 * N>(at + 2 * pair, both);
    } else {
      store<N>(at + pair, turned_first);
      store<N>(at + shape.half + pair, turned_second);
    }
  }
}

template <typename T>
void launch_typed(cudaStream_t stream, const Rope& rope) {
  constexpr int N = kPack<T>;
  const Shape shape{rope.seq_length,
                    static_cast<int>(rope.heads + rope.kv_heads),
                    static_cast<int>(rope.head_dim),
                    static_cast<int>(rope.rotary_dim / 2),
                    static_cast<int>((rope.heads + 2 * rope.kv_heads) * rope.head_dim),
                    log2(rope.base),
                    rope.inverse};
  T* qkv = static_cast<T*>(rope.qkv.data);
  const auto blocks = static_cast<unsigned>(rope.rows);
  const std::size_t shared = 2 * static_cast<std::size_t>(shape.half) * sizeof(float);
  if (rope.interleaved) {
    const bool packs = shape.half % (N / 2) == 0 && shape.head_dim % N == 0;
    packs ? rotate<T, N / 2, true><<<blocks, kThreads, shared, stream>>>(qkv, shape)
          : rotate<T, 1, true><<<blocks, kThreads, shared, stream>>>(qkv, shape);
  } else {
    const bool packs = shape.half % N == 0 && shape.head_dim % N == 0;
    packs ? rotate<T, N, false><<<blocks, kThreads, shared, stream>>>(qkv, shape)
          : rotate<T, 1, false><<<blocks, kThreads, shared, stream>>>(qkv, shape);
  }
}

}  // namespace

void launch_rope(cudaStream_t stream, const Rope& rope) {
  if (rope.qkv.storage == Storage::bf16) {
    launch_typed<bf16>(stream, rope);
  } else {
    launch_typed<float>(stream, rope);
  }
}

}  // namespace capstan::runtime::cuda
