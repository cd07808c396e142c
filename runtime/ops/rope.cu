#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kThreads = 128;

struct Shape {
  std::int64_t seq_length;
  int rotated_heads, head_dim, half, row_width;  ///< half: rotary_dim / 2; row_width: elements of a qkv row
  bool inverse;
};

// cosine and sine of position * base^(-2i / rotary_dim), in f64 so that long positions keep their precision.
__global__ void make_angles(float2* angles, std::int64_t positions, int half, double log2_base) {
  const std::int64_t item = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (item >= positions * half) return;
  const double position = static_cast<double>(item / half);
  const double frequency = exp2(-(static_cast<double>(item % half) / half) * log2_base);
  double sine;
  double cosine;
  sincos(position * frequency, &sine, &cosine);
  angles[item] = make_float2(static_cast<float>(cosine), static_cast<float>(sine));
}

// One block per token. N is the number of pairs that a thread turns at once.
template <typename T, int N, bool kInterleaved>
__global__ void __launch_bounds__(kThreads) rotate(T* qkv, const float2* angles, Shape shape) {
  const std::int64_t token = blockIdx.x;
  const float2* turns = angles + (token % shape.seq_length) * shape.half;
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
      const float2 turn = turns[pair + k];
      const float sine = shape.inverse ? -turn.y : turn.y;
      turned_first[k] = first[k] * turn.x - second[k] * sine;
      turned_second[k] = second[k] * turn.x + first[k] * sine;
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
                    rope.inverse};
  T* qkv = static_cast<T*>(rope.qkv.data);
  const auto blocks = static_cast<unsigned>(rope.rows);
  const auto* angles = static_cast<const float2*>(rope.angles);
  if (rope.interleaved) {
    const bool packs = shape.half % (N / 2) == 0 && shape.head_dim % N == 0;
    packs ? rotate<T, N / 2, true><<<blocks, kThreads, 0, stream>>>(qkv, angles, shape)
          : rotate<T, 1, true><<<blocks, kThreads, 0, stream>>>(qkv, angles, shape);
  } else {
    const bool packs = shape.half % N == 0 && shape.head_dim % N == 0;
    packs ? rotate<T, N, false><<<blocks, kThreads, 0, stream>>>(qkv, angles, shape)
          : rotate<T, 1, false><<<blocks, kThreads, 0, stream>>>(qkv, angles, shape);
  }
}

}  // namespace

void launch_rope_angles(cudaStream_t stream, const Rope& rope, void* angles) {
  const std::int64_t items = rope.seq_length * (rope.rotary_dim / 2);
  make_angles<<<static_cast<unsigned>((items + 255) / 256), 256, 0, stream>>>(
      static_cast<float2*>(angles), rope.seq_length, static_cast<int>(rope.rotary_dim / 2), log2(rope.base));
}

void launch_rope(cudaStream_t stream, const Rope& rope) {
  if (rope.qkv.storage == Storage::bf16) {
    launch_typed<bf16>(stream, rope);
  } else {
    launch_typed<float>(stream, rope);
  }
}

}  // namespace capstan::runtime::cuda
