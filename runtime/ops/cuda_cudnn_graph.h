// The few parts of cuDNN's backend graph API that attention needs: functions found at run time, owned
// descriptors, and a builder for graphs of products, point-wise ops and reductions over four-dimensional
// tensors. Errors are kept until asked for, so that a graph reads as the formula it stands for.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace capstan::runtime::cuda {

struct CudnnFunctions {
  decltype(&cudnnCreate) create = nullptr;
  decltype(&cudnnDestroy) destroy = nullptr;
  decltype(&cudnnSetStream) set_stream = nullptr;
  decltype(&cudnnGetVersion) get_version = nullptr;
  decltype(&cudnnGetErrorString) error_string = nullptr;
  decltype(&cudnnGetLastErrorString) last_error = nullptr;
  decltype(&cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&cudnnBackendFinalize) finalize = nullptr;
  decltype(&cudnnBackendExecute) execute = nullptr;

  /// Fills every function from a library opened with dlopen; the name of the first that is missing, or empty.
  std::string load(void* library);
  std::string reason(cudnnStatus_t status) const;
};

/// Owns a backend descriptor.
class CudnnDescriptor {
 public:
  CudnnDescriptor() = default;
  CudnnDescriptor(const CudnnFunctions& functions, cudnnBackendDescriptor_t raw)
      : functions_(&functions), raw_(raw) {}
  CudnnDescriptor(CudnnDescriptor&& other) noexcept : functions_(other.functions_), raw_(other.raw_) {
    other.raw_ = nullptr;
  }
  CudnnDescriptor& operator=(CudnnDescriptor&& other) noexcept {
    std::swap(functions_, other.functions_);
    std::swap(raw_, other.raw_);
    return *this;
  }
  ~CudnnDescriptor() {
    if (raw_ != nullptr) functions_->destroy_descriptor(raw_);
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

 private:
  const CudnnFunctions* functions_ = nullptr;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

using Extents = std::array<std::int64_t, 4>;

/// A tensor of the graph under construction.
struct CudnnTensor {
  std::int64_t id = 0;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  Extents extents = {}, strides = {};
  cudnnBackendDescriptor_t raw = nullptr;
};

/// What a plan is made for: the device of a handle, or a described one, for which plans can be made anywhere.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t device = nullptr;
};

class CudnnGraph {
 public:
  explicit CudnnGraph(const CudnnFunctions& functions) : functions_(functions) {}

  /// In memory: the caller gives a pointer for `id` when the graph runs.
  CudnnTensor tensor(std::int64_t id, cudnnDataType_t type, const Extents& extents, const Extents& strides);
  /// One f32 that the caller passes by value (a host pointer) for `id`.
  CudnnTensor scalar(std::int64_t id);
  /// Exists within the graph only; dense.
  CudnnTensor inner(cudnnDataType_t type, const Extents& extents);
  CudnnTensor inner_like(cudnnDataType_t type, const Extents& extents, const Extents& strides);
  /// The last two extents are those of a dense tensor that they are the transpose of.
  CudnnTensor inner_transposed(cudnnDataType_t type, const Extents& extents);

  void multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c);
  void pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y,
                 cudnnDataType_t math = CUDNN_DATA_FLOAT);
  void pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& y,
                 cudnnDataType_t math = CUDNN_DATA_FLOAT);
  /// y = select ? x : b.
  void select(const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& select, const CudnnTensor& y);
  /// y = the index of each element along `axis`.
  void index(const CudnnTensor& x, std::int64_t axis, const CudnnTensor& y);
  void reduce(cudnnReduceTensorOp_t op, const CudnnTensor& x, const CudnnTensor& y);
  /// y sees x with other extents and strides.
  void reshape(const CudnnTensor& x, const CudnnTensor& y);

  /// The first execution plan of cuDNN's ranking that can be built; `bytes` is its workspace. An empty
  /// descriptor and `error()` when there is none.
  CudnnDescriptor plan(const CudnnTarget& target, bool deterministic, std::int64_t& bytes);
  const std::string& error() const { return error_; }

 private:
  CudnnTensor add_tensor(CudnnTensor tensor, bool is_virtual, bool by_value);
  CudnnDescriptor make(cudnnBackendDescriptorType_t type);
  void set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
           cudnnBackendAttributeType_t type, std::int64_t count, const void* value);
  void set_tensor(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                  const CudnnTensor& tensor) {
    set(descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &tensor.raw);
  }
  void finish(const CudnnDescriptor& descriptor, const char* what);
  void keep_op(CudnnDescriptor op);
  CudnnDescriptor point_descriptor(cudnnPointwiseMode_t mode, cudnnDataType_t math, std::int64_t axis);
  bool note(cudnnStatus_t status, const char* what);
  bool sums_atomically(cudnnBackendDescriptor_t engine_config);

  const CudnnFunctions& functions_;
  std::vector<CudnnDescriptor> owned_;
  std::vector<cudnnBackendDescriptor_t> ops_;
  std::int64_t next_inner_ = 1000;
  std::string error_;
};

}  // namespace capstan::runtime::cuda
