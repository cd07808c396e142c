#include "runtime/ops/cuda_cudnn.h"

#include "runtime/device/cuda_error.h"

#if __has_include(<cudnn_graph.h>)

#include "runtime/ops/cuda_cudnn_graph.h"

#include <dlfcn.h>

#include <cstdlib>
#include <limits>
#include <utility>

namespace capstan::runtime::cuda {
namespace {

class Library final : public CudnnLibrary {
 public:
  ~Library() override {
    if (handle != nullptr) functions.destroy(handle);
    // The library stays loaded: its kernels may still be named by graphs that the process has not destroyed.
  }
  std::size_t version() const override { return functions.get_version(); }

  CudnnTarget target() const { return {handle, device.raw()}; }

  CudnnFunctions functions;
  cudnnHandle_t handle = nullptr;
  CudnnDescriptor device;  ///< instead of a handle
};

/// The library with its functions, without a handle.
std::shared_ptr<Library> load_library(std::string& why) {
  const char* wanted = std::getenv("CAPSTAN_CUDNN");
  if (wanted != nullptr && std::string(wanted) == "off") {
    why = "CAPSTAN_CUDNN is off";
    return nullptr;
  }
  const char* names[] = {wanted, "libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};
  void* file = nullptr;
  for (const char* name : names) {
    if (file == nullptr && name != nullptr && *name != '\0') file = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (file == nullptr) {
    why = "libcudnn.so.9 was not found";
    return nullptr;
  }
  auto library = std::make_shared<Library>();
  if (const std::string missing = library->functions.load(file); !missing.empty()) {
    why = "libcudnn.so.9 has no " + missing;
    return nullptr;
  }
  if (library->functions.get_version() < 91000) {
    why = "cuDNN is older than 9.10";
    return nullptr;
  }
  return library;
}

// Numbers of the tensors that live in memory.
enum Id : std::int64_t { kQ = 1, kK, kV, kO, kLse, kDo, kDq, kDk, kDv, kDelta, kSums, kScale, kHidden, kOne };

class Built final : public CudnnAttention {
 public:
  std::size_t workspace_bytes() const override { return static_cast<std::size_t>(bytes); }
  std::size_t sum_floats() const override { return sums; }

  Status forward(cudaStream_t stream, const Attention& a, void* workspace) override {
    char* qkv = static_cast<char*>(a.qkv.data);
    const std::int64_t head = a.head_dim * 2;  // bytes
    return run(stream, workspace,
               {{kQ, qkv},
                {kK, qkv + a.heads * head},
                {kV, qkv + (a.heads + a.kv_heads) * head},
                {kO, a.out.data},
                {kLse, a.lse}});
  }

  Status backward(cudaStream_t stream, const AttentionBackward& b, float* sum_space,
                  void* workspace) override {
    const Attention& a = b.forward;
    char* qkv = static_cast<char*>(a.qkv.data);
    char* dqkv = static_cast<char*>(b.dqkv.data);
    const std::int64_t head = a.head_dim * 2;
    std::vector<std::pair<std::int64_t, void*>> pointers = {{kQ, qkv},
                                                            {kK, qkv + a.heads * head},
                                                            {kV, qkv + (a.heads + a.kv_heads) * head},
                                                            {kO, a.out.data},
                                                            {kLse, a.lse},
                                                            {kDo, b.dout.data},
                                                            {kDq, dqkv},
                                                            {kDk, dqkv + a.heads * head},
                                                            {kDv, dqkv + (a.heads + a.kv_heads) * head},
                                                            {kDelta, b.delta}};
    if (sums > 0) pointers.emplace_back(kSums, sum_space);
    return run(stream, workspace, std::move(pointers));
  }

  std::shared_ptr<Library> library;
  CudnnDescriptor plan;
  std::int64_t bytes = 0;
  std::size_t sums = 0;
  float scale = 1.0F;
  bool causal = true;
  bool is_backward = false;

 private:
  Status run(cudaStream_t stream, void* workspace, std::vector<std::pair<std::int64_t, void*>> pointers) {
    const CudnnFunctions& f = library->functions;
    float hidden = -std::numeric_limits<float>::infinity();
    float one = 1.0F;
    pointers.emplace_back(kScale, &scale);
    if (causal) pointers.emplace_back(kHidden, &hidden);
    if (is_backward) pointers.emplace_back(kOne, &one);
    std::vector<std::int64_t> ids;
    std::vector<void*> data;
    for (const auto& [id, pointer] : pointers) {
      ids.push_back(id);
      data.push_back(pointer);
    }
    cudnnStatus_t status = f.set_stream(library->handle, stream);
    cudnnBackendDescriptor_t raw = nullptr;
    if (status == CUDNN_STATUS_SUCCESS)
      status = f.create_descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &raw);
    const CudnnDescriptor pack(f, raw);
    const auto count = static_cast<std::int64_t>(ids.size());
    if (status == CUDNN_STATUS_SUCCESS) {
      status = f.set_attribute(raw, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, ids.data());
    }
    if (status == CUDNN_STATUS_SUCCESS) {
      status = f.set_attribute(raw, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                               data.data());
    }
    if (status == CUDNN_STATUS_SUCCESS) {
      status = f.set_attribute(raw, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    }
    if (status == CUDNN_STATUS_SUCCESS) status = f.finalize(raw);
    if (status == CUDNN_STATUS_SUCCESS) status = f.execute(library->handle, plan.raw(), raw);
    if (status == CUDNN_STATUS_SUCCESS) return {};
    return device_failure("cudnnBackendExecute", f.reason(status));
  }
};

struct Shape {
  std::int64_t b, h, kv, s, d, width;
  Extents query() const { return {b, h, s, d}; }
  Extents key() const { return {b, kv, s, d}; }
  Extents key_transposed() const { return {b, kv, d, s}; }
  Extents scores() const { return {b, h, s, s}; }
  Extents row() const { return {b, h, s, 1}; }
  Extents row_strides() const { return {h * s, s, 1, 1}; }
  Extents packed() const { return {s * width, d, width, 1}; }  ///< a head within qkv
  Extents packed_transposed() const { return {s * width, d, 1, width}; }
  Extents out_strides() const { return {s * h * d, d, h * d, 1}; }
};

/// scores with everything beyond the diagonal at minus infinity.
CudnnTensor hide_future(CudnnGraph& graph, const CudnnTensor& scores, const Shape& shape) {
  const CudnnTensor row = graph.inner(CUDNN_DATA_INT32, shape.scores());
  const CudnnTensor column = graph.inner(CUDNN_DATA_INT32, shape.scores());
  const CudnnTensor visible = graph.inner(CUDNN_DATA_BOOLEAN, shape.scores());
  const CudnnTensor masked = graph.inner(CUDNN_DATA_FLOAT, shape.scores());
  graph.index(scores, 2, row);
  graph.index(scores, 3, column);
  graph.pointwise(CUDNN_POINTWISE_CMP_GE, row, column, visible, CUDNN_DATA_BOOLEAN);
  graph.select(scores, graph.scalar(kHidden), visible, masked);
  return masked;
}

void describe_forward(CudnnGraph& graph, const Shape& shape, bool causal) {
  constexpr cudnnDataType_t kStorage = CUDNN_DATA_BFLOAT16;
  constexpr cudnnDataType_t kMath = CUDNN_DATA_FLOAT;
  const CudnnTensor q = graph.tensor(kQ, kStorage, shape.query(), shape.packed());
  const CudnnTensor k = graph.tensor(kK, kStorage, shape.key_transposed(), shape.packed_transposed());
  const CudnnTensor v = graph.tensor(kV, kStorage, shape.key(), shape.packed());
  const CudnnTensor o = graph.tensor(kO, kStorage, shape.query(), shape.out_strides());
  const CudnnTensor lse = graph.tensor(kLse, kMath, shape.row(), shape.row_strides());
  const CudnnTensor product = graph.inner(kMath, shape.scores());
  CudnnTensor scores = graph.inner(kMath, shape.scores());
  graph.multiply(q, k, product);
  graph.pointwise(CUDNN_POINTWISE_MUL, product, graph.scalar(kScale), scores);
  if (causal) scores = hide_future(graph, scores, shape);
  const CudnnTensor largest = graph.inner(kMath, shape.row());
  const CudnnTensor shifted = graph.inner(kMath, shape.scores());
  const CudnnTensor exponential = graph.inner(kMath, shape.scores());
  const CudnnTensor total = graph.inner(kMath, shape.row());
  const CudnnTensor logarithm = graph.inner(kMath, shape.row());
  const CudnnTensor probability = graph.inner(kStorage, shape.scores());
  graph.reduce(CUDNN_REDUCE_TENSOR_MAX, scores, largest);
  graph.pointwise(CUDNN_POINTWISE_SUB, scores, largest, shifted);
  graph.pointwise(CUDNN_POINTWISE_EXP, shifted, exponential);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, exponential, total);
  graph.pointwise(CUDNN_POINTWISE_LOG, total, logarithm);
  graph.pointwise(CUDNN_POINTWISE_ADD, largest, logarithm, lse);
  graph.pointwise(CUDNN_POINTWISE_DIV, exponential, total, probability);
  graph.multiply(probability, v, o);
}

// dv = pT do; ds = p * (do vT - delta) * scale; dk = dsT q; dq = ds k. Heads of a group are summed for dk and
// dv.
void describe_backward(CudnnGraph& graph, const Shape& shape, bool causal, bool sums) {
  constexpr cudnnDataType_t kStorage = CUDNN_DATA_BFLOAT16;
  constexpr cudnnDataType_t kMath = CUDNN_DATA_FLOAT;
  const CudnnTensor q = graph.tensor(kQ, kStorage, shape.query(), shape.packed());
  const CudnnTensor k = graph.tensor(kK, kStorage, shape.key_transposed(), shape.packed_transposed());
  const CudnnTensor v = graph.tensor(kV, kStorage, shape.key_transposed(), shape.packed_transposed());
  const CudnnTensor o = graph.tensor(kO, kStorage, shape.query(), shape.out_strides());
  const CudnnTensor dout = graph.tensor(kDo, kStorage, shape.query(), shape.out_strides());
  const CudnnTensor lse = graph.tensor(kLse, kMath, shape.row(), shape.row_strides());
  const CudnnTensor delta = graph.tensor(kDelta, kMath, shape.row(), shape.row_strides());
  const CudnnTensor dq = graph.tensor(kDq, kStorage, shape.query(), shape.packed());
  const CudnnTensor dk = graph.tensor(kDk, kStorage, shape.key(), shape.packed());
  const CudnnTensor dv = graph.tensor(kDv, kStorage, shape.key(), shape.packed());
  const CudnnTensor scale = graph.scalar(kScale);

  const CudnnTensor products = graph.inner(kMath, shape.query());
  const CudnnTensor row_sums = graph.inner(kMath, shape.row());
  graph.pointwise(CUDNN_POINTWISE_MUL, dout, o, products);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, products, row_sums);
  graph.pointwise(CUDNN_POINTWISE_MUL, row_sums, graph.scalar(kOne), delta);

  const CudnnTensor product = graph.inner(kMath, shape.scores());
  const CudnnTensor scaled = graph.inner(kMath, shape.scores());
  CudnnTensor scores = graph.inner(kMath, shape.scores());
  const CudnnTensor probability = graph.inner(kMath, shape.scores());
  graph.multiply(q, k, product);
  graph.pointwise(CUDNN_POINTWISE_MUL, product, scale, scaled);
  graph.pointwise(CUDNN_POINTWISE_SUB, scaled, lse, scores);
  if (causal) scores = hide_future(graph, scores, shape);
  graph.pointwise(CUDNN_POINTWISE_EXP, scores, probability);

  // The same bytes read as [key, query]; only the order of the last two extents changes.
  const auto transposed = [&](const CudnnTensor& from) {
    const CudnnTensor to = graph.inner_transposed(kStorage, {shape.b, shape.h, shape.s, shape.s});
    graph.reshape(from, to);
    return to;
  };
  const auto product_over_group = [&](const CudnnTensor& left, const CudnnTensor& right,
                                      const CudnnTensor& out) {
    if (shape.h == shape.kv) return graph.multiply(left, right, out);
    const CudnnTensor per_head = graph.inner(kStorage, shape.query());
    graph.multiply(left, right, per_head);
    graph.reduce(CUDNN_REDUCE_TENSOR_ADD, per_head, out);
  };
  product_over_group(transposed(probability), dout, dv);

  const CudnnTensor dprobability = graph.inner(kMath, shape.scores());
  const CudnnTensor centered = graph.inner(kMath, shape.scores());
  const CudnnTensor weighted = graph.inner(kMath, shape.scores());
  const CudnnTensor dscores = graph.inner(kMath, shape.scores());
  graph.multiply(dout, v, dprobability);
  graph.pointwise(CUDNN_POINTWISE_SUB, dprobability, delta, centered);
  graph.pointwise(CUDNN_POINTWISE_MUL, centered, probability, weighted);
  graph.pointwise(CUDNN_POINTWISE_MUL, weighted, scale, dscores);
  product_over_group(transposed(dscores), q, dk);

  const CudnnTensor key_rows = graph.inner_like(kStorage, shape.key(), shape.packed());
  graph.reshape(k, key_rows);
  if (sums) {
    const CudnnTensor dq_sums = graph.tensor(kSums, kMath, shape.query(),
                                             {shape.h * shape.s * shape.d, shape.s * shape.d, shape.d, 1});
    graph.multiply(dscores, key_rows, dq_sums);
    graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sums, dq);
  } else {
    graph.multiply(dscores, key_rows, dq);
  }
}

}  // namespace

std::shared_ptr<CudnnLibrary> CudnnLibrary::open(std::string& why) {
  std::shared_ptr<Library> library = load_library(why);
  if (library == nullptr) return nullptr;
  if (const cudnnStatus_t status = library->functions.create(&library->handle);
      status != CUDNN_STATUS_SUCCESS) {
    why = "cudnnCreate: " + library->functions.reason(status);
    library->handle = nullptr;
    return nullptr;
  }
  return library;
}

std::shared_ptr<CudnnLibrary> CudnnLibrary::open_described(const std::string& device_json, std::string& why) {
  std::shared_ptr<Library> library = load_library(why);
  if (library == nullptr) return nullptr;
  const CudnnFunctions& f = library->functions;
  cudnnBackendDescriptor_t raw = nullptr;
  cudnnStatus_t status = f.create_descriptor(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, &raw);
  library->device = CudnnDescriptor(f, raw);
  if (status == CUDNN_STATUS_SUCCESS) {
    status = f.set_attribute(raw, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                             static_cast<std::int64_t>(device_json.size()), device_json.data());
  }
  if (status == CUDNN_STATUS_SUCCESS) status = f.finalize(raw);
  if (status == CUDNN_STATUS_SUCCESS) return library;
  why = "device description: " + f.reason(status);
  return nullptr;
}

std::unique_ptr<CudnnAttention> CudnnAttention::build(const std::shared_ptr<CudnnLibrary>& library,
                                                      const Attention& a, bool backward, bool deterministic,
                                                      std::string& why) {
  if (a.qkv.storage != Storage::bf16 || a.head_dim % 8 != 0 || a.head_dim > 128 || a.dropout.active() ||
      a.seq_length < 2) {
    why = "the shape, the storage or dropout is not for cuDNN";
    return nullptr;
  }
  auto own = std::static_pointer_cast<Library>(library);
  CudnnGraph graph(own->functions);
  const Shape shape{a.batch,      a.heads,    a.kv_heads,
                    a.seq_length, a.head_dim, (a.heads + 2 * a.kv_heads) * a.head_dim};
  const bool sums = backward && !deterministic;
  backward ? describe_backward(graph, shape, a.causal, sums) : describe_forward(graph, shape, a.causal);
  auto built = std::make_unique<Built>();
  built->plan = graph.plan(own->target(), deterministic, built->bytes);
  if (built->plan.raw() == nullptr) {
    why = graph.error();
    return nullptr;
  }
  built->library = std::move(own);
  built->scale = a.scale;
  built->causal = a.causal;
  built->is_backward = backward;
  if (sums) built->sums = static_cast<std::size_t>(a.batch * a.heads * a.seq_length * a.head_dim);
  return built;
}

}  // namespace capstan::runtime::cuda

#else

namespace capstan::runtime::cuda {

std::shared_ptr<CudnnLibrary> CudnnLibrary::open(std::string& why) {
  why = "built without cuDNN headers";
  return nullptr;
}

std::shared_ptr<CudnnLibrary> CudnnLibrary::open_described(const std::string&, std::string& why) {
  why = "built without cuDNN headers";
  return nullptr;
}

std::unique_ptr<CudnnAttention> CudnnAttention::build(const std::shared_ptr<CudnnLibrary>&, const Attention&,
                                                      bool, bool, std::string& why) {
  why = "built without cuDNN headers";
  return nullptr;
}

}  // namespace capstan::runtime::cuda

#endif
