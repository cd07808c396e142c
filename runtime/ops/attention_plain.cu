// Attention on the CUDA cores for any storage and any head_dim up to 256: the fallback for shapes that the
// tensor-core kernels do not take, and f32. A warp owns four rows; the 32 lanes are 32 columns of the score
// matrix when scores are made and 32 columns of the head when they are applied.
#include "runtime/ops/cuda_kernel.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarp;
constexpr int kRowsPerWarp = 4;
constexpr int kRows = kWarps * kRowsPerWarp;  // rows of a block
constexpr int kTile = kWarp;                  // columns of the score matrix at a time

template <typename T>
struct Problem {
  const T* qkv;
  const T* dout;  // backward only
  T* out;         // forward: o; backward: dqkv
  float* lse;
  const float* delta;
  const std::uint64_t* counter;
  DropoutDraw draw;
  int seq_length, heads, kv_heads, head_dim;
  float scale;
  bool causal, drops;

  __device__ std::int64_t row_width() const {
    return static_cast<std::int64_t>(heads + 2 * kv_heads) * head_dim;
  }
  __device__ int kv_of(int head) const { return head / (heads / kv_heads); }
  __device__ std::int64_t key_column(int kv) const {
    return static_cast<std::int64_t>(heads + kv) * head_dim;
  }
  __device__ std::int64_t value_column(int kv) const {
    return static_cast<std::int64_t>(heads + kv_heads + kv) * head_dim;
  }
  __device__ bool visible(int query, int key) const {
    return query < seq_length && key < seq_length && (!causal || key <= query);
  }
  /// 0, or the factor of a kept probability.
  __device__ float dropout_factor(const DropoutDraw& now, int batch, int head, int query, int key) const {
    const std::uint64_t row = (static_cast<std::uint64_t>(batch) * heads + head) * seq_length + query;
    return now.keeps_element(row * seq_length + key) ? now.scale : 0.0F;
  }
};

// Copies rows first .. first + count of a [rows, width] matrix (head_dim columns from `column`) to shared
// memory as floats, with `pitch` floats a row; rows beyond `limit` become zeros.
template <typename T>
__device__ void stage(const T* matrix, std::int64_t width, std::int64_t column, int first, int count,
                      int limit, int head_dim, int pitch, float* shared) {
  for (int i = threadIdx.x; i < count * head_dim; i += kThreads) {
    const int row = i / head_dim;
    const int d = i % head_dim;
    shared[row * pitch + d] = first + row < limit ? widen(matrix[(first + row) * width + column + d]) : 0.0F;
  }
}

// products[r] = rows[r] . tile[lane] for the warp's rows.
__device__ __forceinline__ void dot_rows(const float* rows, const float* tile, int pitch, int head_dim,
                                         float (&products)[kRowsPerWarp]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) products[r] = 0.0F;
  for (int d = 0; d < head_dim; ++d) {
    const float other = tile[lane * pitch + d];
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) products[r] += rows[r * pitch + d] * other;
  }
}

// sums[r][c] += sum over the tile's 32 columns j of weights[r] (of lane j) * tile[j][lane + 32 c].
template <int kColumns>
__device__ __forceinline__ void apply_rows(const float (&weights)[kRowsPerWarp], const float* tile, int pitch,
                                           int head_dim, float (&sums)[kRowsPerWarp][kColumns]) {
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  for (int j = 0; j < kTile; ++j) {
    float weight[kRowsPerWarp];
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) weight[r] = __shfl_sync(0xffffffffU, weights[r], j);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane + kWarp * c;
      if (d < head_dim) {
        const float value = tile[j * pitch + d];
#pragma unroll
        for (int r = 0; r < kRowsPerWarp; ++r) sums[r][c] += weight[r] * value;
      }
    }
  }
}

template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads) forward(Problem<T> p) {
  extern __shared__ float shared[];
  const int pitch = p.head_dim + 1;
  float* queries = shared;
  float* keys = queries + kRows * pitch;
  float* values = keys + kTile * pitch;
  const int batch = blockIdx.z;
  const int head = blockIdx.y;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int own = static_cast<int>(threadIdx.x) / kWarp * kRowsPerWarp;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  const std::int64_t width = p.row_width();
  const T* matrix = p.qkv + batch * p.seq_length * width;
  const int kv = p.kv_of(head);
  DropoutDraw draw = p.draw;
  if (p.drops) draw.counter = *p.counter;

  stage(matrix, width, static_cast<std::int64_t>(head) * p.head_dim, first, kRows, p.seq_length, p.head_dim,
        pitch, queries);
  float largest[kRowsPerWarp];
  float total[kRowsPerWarp];
  float sums[kRowsPerWarp][kColumns] = {};
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    largest[r] = -INFINITY;
    total[r] = 0.0F;
  }
  const int end = p.causal ? min(first + kRows, p.seq_length) : p.seq_length;
  for (int key0 = 0; key0 < end; key0 += kTile) {
    __syncthreads();
    stage(matrix, width, p.key_column(kv), key0, kTile, p.seq_length, p.head_dim, pitch, keys);
    stage(matrix, width, p.value_column(kv), key0, kTile, p.seq_length, p.head_dim, pitch, values);
    __syncthreads();
    float score[kRowsPerWarp];
    dot_rows(queries + own * pitch, keys, pitch, p.head_dim, score);
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int query = first + own + r;
      const bool seen = p.visible(query, key0 + lane);
      score[r] = seen ? score[r] * p.scale : -INFINITY;
      const float tile_largest = reduce_warp(score[r], Max());
      const float next = fmaxf(largest[r], tile_largest);
      const float shrink = next == -INFINITY ? 1.0F : expf(largest[r] - next);
      score[r] = seen ? expf(score[r] - next) : 0.0F;
      total[r] = total[r] * shrink + reduce_warp(score[r], Sum());
      largest[r] = next;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) sums[r][c] *= shrink;
      if (p.drops && seen) score[r] *= p.dropout_factor(draw, batch, head, query, key0 + lane);
    }
    apply_rows(score, values, pitch, p.head_dim, sums);
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int query = first + own + r;
    if (query >= p.seq_length) continue;
    T* row =
        p.out + ((static_cast<std::int64_t>(batch) * p.seq_length + query) * p.heads + head) * p.head_dim;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane + kWarp * c;
      if (d < p.head_dim) row[d] = narrow<T>(sums[r][c] / total[r]);
    }
    if (lane == 0) {
      p.lse[(static_cast<std::int64_t>(batch) * p.heads + head) * p.seq_length + query] =
          largest[r] + logf(total[r]);
    }
  }
}

// delta = sum over d of do * o: one warp a (token, head).
template <typename T>
__global__ void __launch_bounds__(256)
    row_products(const T* dout, const T* out, float* delta, std::int64_t rows, int seq_length, int heads,
                 int head_dim) {
  const std::int64_t row =
      static_cast<std::int64_t>(blockIdx.x) * 8 + threadIdx.x / kWarp;  // token * heads + head
  if (row >= rows) return;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  float sum = 0.0F;
  for (int d = lane; d < head_dim; d += kWarp) {
    sum += widen(dout[row * head_dim + d]) * widen(out[row * head_dim + d]);
  }
  sum = reduce_warp(sum, Sum());
  if (lane != 0) return;
  const std::int64_t token = row / heads;
  const std::int64_t head = row % heads;
  delta[((token / seq_length) * heads + head) * seq_length + token % seq_length] = sum;
}

// Gradients of the queries: rows are queries, the tile runs over keys.
template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads) backward_queries(Problem<T> p) {
  extern __shared__ float shared[];
  const int pitch = p.head_dim + 1;
  float* queries = shared;
  float* douts = queries + kRows * pitch;
  float* keys = douts + kRows * pitch;
  float* values = keys + kTile * pitch;
  const int batch = blockIdx.z;
  const int head = blockIdx.y;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int own = static_cast<int>(threadIdx.x) / kWarp * kRowsPerWarp;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  const std::int64_t width = p.row_width();
  const std::int64_t out_width = static_cast<std::int64_t>(p.heads) * p.head_dim;
  const T* matrix = p.qkv + batch * p.seq_length * width;
  const T* dout = p.dout + batch * p.seq_length * out_width;
  const std::int64_t head_column = static_cast<std::int64_t>(head) * p.head_dim;
  const int kv = p.kv_of(head);
  DropoutDraw draw = p.draw;
  if (p.drops) draw.counter = *p.counter;

  stage(matrix, width, head_column, first, kRows, p.seq_length, p.head_dim, pitch, queries);
  stage(dout, out_width, head_column, first, kRows, p.seq_length, p.head_dim, pitch, douts);
  float sums[kRowsPerWarp][kColumns] = {};
  const std::int64_t stats = (static_cast<std::int64_t>(batch) * p.heads + head) * p.seq_length;
  const int end = p.causal ? min(first + kRows, p.seq_length) : p.seq_length;
  for (int key0 = 0; key0 < end; key0 += kTile) {
    __syncthreads();
    stage(matrix, width, p.key_column(kv), key0, kTile, p.seq_length, p.head_dim, pitch, keys);
    stage(matrix, width, p.value_column(kv), key0, kTile, p.seq_length, p.head_dim, pitch, values);
    __syncthreads();
    float score[kRowsPerWarp];
    float dprobability[kRowsPerWarp];
    dot_rows(queries + own * pitch, keys, pitch, p.head_dim, score);
    dot_rows(douts + own * pitch, values, pitch, p.head_dim, dprobability);
#pragma unroll
    for (int r = 0; r < kRowsPerWarp; ++r) {
      const int query = first + own + r;
      const int key = key0 + lane;
      if (p.visible(query, key)) {
        const float probability = expf(score[r] * p.scale - p.lse[stats + query]);
        if (p.drops) dprobability[r] *= p.dropout_factor(draw, batch, head, query, key);
        score[r] = probability * (dprobability[r] - p.delta[stats + query]) * p.scale;
      } else {
        score[r] = 0.0F;
      }
    }
    apply_rows(score, keys, pitch, p.head_dim, sums);
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int query = first + own + r;
    if (query >= p.seq_length) continue;
    T* row = p.out + (static_cast<std::int64_t>(batch) * p.seq_length + query) * width + head_column;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane + kWarp * c;
      if (d < p.head_dim) row[d] = narrow<T>(sums[r][c]);
    }
  }
}

// Gradients of keys and values: rows are keys, the tile runs over queries, head after head of the group.
template <typename T, int kColumns>
__global__ void __launch_bounds__(kThreads) backward_keys(Problem<T> p) {
  extern __shared__ float shared[];
  const int pitch = p.head_dim + 1;
  float* keys = shared;
  float* values = keys + kRows * pitch;
  float* queries = values + kRows * pitch;
  float* douts = queries + kTile * pitch;
  const int batch = blockIdx.z;
  const int kv = blockIdx.y;
  const int lane = static_cast<int>(threadIdx.x) % kWarp;
  const int own = static_cast<int>(threadIdx.x) / kWarp * kRowsPerWarp;
  const int first = static_cast<int>(blockIdx.x) * kRows;
  const std::int64_t width = p.row_width();
  const std::int64_t out_width = static_cast<std::int64_t>(p.heads) * p.head_dim;
  const T* matrix = p.qkv + batch * p.seq_length * width;
  const T* dout = p.dout + batch * p.seq_length * out_width;
  DropoutDraw draw = p.draw;
  if (p.drops) draw.counter = *p.counter;

  stage(matrix, width, p.key_column(kv), first, kRows, p.seq_length, p.head_dim, pitch, keys);
  stage(matrix, width, p.value_column(kv), first, kRows, p.seq_length, p.head_dim, pitch, values);
  float dkeys[kRowsPerWarp][kColumns] = {};
  float dvalues[kRowsPerWarp][kColumns] = {};
  const int group = p.heads / p.kv_heads;
  for (int head = kv * group; head < (kv + 1) * group; ++head) {
    const std::int64_t head_column = static_cast<std::int64_t>(head) * p.head_dim;
    const std::int64_t stats = (static_cast<std::int64_t>(batch) * p.heads + head) * p.seq_length;
    for (int query0 = p.causal ? first / kTile * kTile : 0; query0 < p.seq_length; query0 += kTile) {
      __syncthreads();
      stage(matrix, width, head_column, query0, kTile, p.seq_length, p.head_dim, pitch, queries);
      stage(dout, out_width, head_column, query0, kTile, p.seq_length, p.head_dim, pitch, douts);
      __syncthreads();
      float score[kRowsPerWarp];
      float dprobability[kRowsPerWarp];
      dot_rows(keys + own * pitch, queries, pitch, p.head_dim, score);
      dot_rows(values + own * pitch, douts, pitch, p.head_dim, dprobability);
      float kept[kRowsPerWarp];
#pragma unroll
      for (int r = 0; r < kRowsPerWarp; ++r) {
        const int key = first + own + r;
        const int query = query0 + lane;
        if (p.visible(query, key)) {
          const float probability = expf(score[r] * p.scale - p.lse[stats + query]);
          const float factor = p.drops ? p.dropout_factor(draw, batch, head, query, key) : 1.0F;
          kept[r] = probability * factor;
          score[r] = probability * (dprobability[r] * factor - p.delta[stats + query]) * p.scale;
        } else {
          kept[r] = 0.0F;
          score[r] = 0.0F;
        }
      }
      apply_rows(kept, douts, pitch, p.head_dim, dvalues);
      apply_rows(score, queries, pitch, p.head_dim, dkeys);
    }
  }
#pragma unroll
  for (int r = 0; r < kRowsPerWarp; ++r) {
    const int key = first + own + r;
    if (key >= p.seq_length) continue;
    T* row = p.out + (static_cast<std::int64_t>(batch) * p.seq_length + key) * width;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const int d = lane + kWarp * c;
      if (d >= p.head_dim) continue;
      row[p.key_column(kv) + d] = narrow<T>(dkeys[r][c]);
      row[p.value_column(kv) + d] = narrow<T>(dvalues[r][c]);
    }
  }
}

template <typename T>
Problem<T> problem_of(const Attention& attention) {
  Problem<T> p = {};
  p.qkv = static_cast<const T*>(attention.qkv.data);
  p.out = static_cast<T*>(attention.out.data);
  p.lse = attention.lse;
  p.counter = attention.dropout.counter;
  p.draw = make_draw(attention.dropout);
  p.seq_length = static_cast<int>(attention.seq_length);
  p.heads = static_cast<int>(attention.heads);
  p.kv_heads = static_cast<int>(attention.kv_heads);
  p.head_dim = static_cast<int>(attention.head_dim);
  p.scale = attention.scale;
  p.causal = attention.causal;
  p.drops = attention.dropout.active();
  return p;
}

// More than 48 KB of shared memory has to be asked for; doing so twice is harmless and allowed during
// capture.
template <typename Kernel, typename Argument>
void start(Kernel kernel, dim3 grid, std::size_t shared, cudaStream_t stream, const Argument& argument) {
  if (shared > 48 * 1024) {
    cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared));
  }
  kernel<<<grid, kThreads, shared, stream>>>(argument);
}

dim3 grid_of(const Attention& attention, std::int64_t heads) {
  return {static_cast<unsigned>((attention.seq_length + kRows - 1) / kRows), static_cast<unsigned>(heads),
          static_cast<unsigned>(attention.batch)};
}

template <typename T>
void forward_typed(cudaStream_t stream, const Attention& attention) {
  const Problem<T> p = problem_of<T>(attention);
  const std::size_t shared = static_cast<std::size_t>(kRows + 2 * kTile) * (p.head_dim + 1) * sizeof(float);
  const dim3 grid = grid_of(attention, attention.heads);
  p.head_dim <= 128 ? start(forward<T, 4>, grid, shared, stream, p)
                    : start(forward<T, 8>, grid, shared, stream, p);
}

template <typename T>
void backward_typed(cudaStream_t stream, const AttentionBackward& attention) {
  Problem<T> p = problem_of<T>(attention.forward);
  p.dout = static_cast<const T*>(attention.dout.data);
  p.out = static_cast<T*>(attention.dqkv.data);
  p.delta = attention.delta;
  const std::size_t shared =
      static_cast<std::size_t>(2 * kRows + 2 * kTile) * (p.head_dim + 1) * sizeof(float);
  const dim3 query_grid = grid_of(attention.forward, attention.forward.heads);
  const dim3 key_grid = grid_of(attention.forward, attention.forward.kv_heads);
  if (p.head_dim <= 128) {
    start(backward_queries<T, 4>, query_grid, shared, stream, p);
    start(backward_keys<T, 4>, key_grid, shared, stream, p);
  } else {
    start(backward_queries<T, 8>, query_grid, shared, stream, p);
    start(backward_keys<T, 8>, key_grid, shared, stream, p);
  }
}

}  // namespace

void launch_attention_plain(cudaStream_t stream, const Attention& attention) {
  attention.qkv.storage == Storage::bf16 ? forward_typed<bf16>(stream, attention)
                                         : forward_typed<float>(stream, attention);
}

void launch_attention_backward_plain(cudaStream_t stream, const AttentionBackward& attention) {
  launch_attention_delta(stream, attention);
  attention.forward.qkv.storage == Storage::bf16 ? backward_typed<bf16>(stream, attention)
                                                 : backward_typed<float>(stream, attention);
}

void launch_attention_delta(cudaStream_t stream, const AttentionBackward& attention) {
  const Attention& f = attention.forward;
  const std::int64_t rows = f.batch * f.seq_length * f.heads;
  const auto blocks = static_cast<unsigned>((rows + 7) / 8);
  const int seq_length = static_cast<int>(f.seq_length);
  const int heads = static_cast<int>(f.heads);
  const int head_dim = static_cast<int>(f.head_dim);
  if (f.qkv.storage == Storage::bf16) {
    row_products<<<blocks, 256, 0, stream>>>(static_cast<const bf16*>(attention.dout.data),
                                             static_cast<const bf16*>(f.out.data), attention.delta, rows,
                                             seq_length, heads, head_dim);
  } else {
    row_products<<<blocks, 256, 0, stream>>>(static_cast<const float*>(attention.dout.data),
                                             static_cast<const float*>(f.out.data), attention.delta, rows,
                                             seq_length, heads, head_dim);
  }
}

}  // namespace capstan::runtime::cuda
