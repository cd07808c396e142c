#if __has_include(<cudnn_graph.h>)

#include "runtime/ops/cuda_cudnn_graph.h"

#include <dlfcn.h>

#include <utility>

namespace capstan::runtime::cuda {

std::string CudnnFunctions::load(void* library) {
  std::string missing;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(create, "cudnnCreate");
  find(destroy, "cudnnDestroy");
  find(set_stream, "cudnnSetStream");
  find(get_version, "cudnnGetVersion");
  find(error_string, "cudnnGetErrorString");
  find(last_error, "cudnnGetLastErrorString");
  find(create_descriptor, "cudnnBackendCreateDescriptor");
  find(destroy_descriptor, "cudnnBackendDestroyDescriptor");
  find(set_attribute, "cudnnBackendSetAttribute");
  find(get_attribute, "cudnnBackendGetAttribute");
  find(finalize, "cudnnBackendFinalize");
  find(execute, "cudnnBackendExecute");
  return missing;
}

std::string CudnnFunctions::reason(cudnnStatus_t status) const {
  std::string text = error_string(status);
  char detail[512] = {};
  last_error(detail, sizeof(detail) - 1);
  if (detail[0] != '\0') text += std::string(": ") + detail;
  return text;
}

bool CudnnGraph::note(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return true;
  if (error_.empty()) error_ = std::string(what) + ": " + functions_.reason(status);
  return false;
}

CudnnDescriptor CudnnGraph::make(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  note(functions_.create_descriptor(type, &raw), "cudnnBackendCreateDescriptor");
  return CudnnDescriptor(functions_, raw);
}

void CudnnGraph::set(cudnnBackendDescriptor_t descriptor, cudnnBackendAttributeName_t name,
                     cudnnBackendAttributeType_t type, std::int64_t count, const void* value) {
  if (!error_.empty()) return;
  note(functions_.set_attribute(descriptor, name, type, count, value), "cudnnBackendSetAttribute");
}

void CudnnGraph::finish(const CudnnDescriptor& descriptor, const char* what) {
  if (error_.empty()) note(functions_.finalize(descriptor.raw()), what);
}

CudnnTensor CudnnGraph::add_tensor(CudnnTensor tensor, bool is_virtual, bool by_value) {
  CudnnDescriptor descriptor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const std::int64_t alignment = 16;
  set(descriptor.raw(), CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &tensor.type);
  set(descriptor.raw(), CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, tensor.extents.data());
  set(descriptor.raw(), CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, tensor.strides.data());
  set(descriptor.raw(), CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &tensor.id);
  set(descriptor.raw(), CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
  if (is_virtual) set(descriptor.raw(), CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
  if (by_value) set(descriptor.raw(), CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
  finish(descriptor, "tensor");
  tensor.raw = descriptor.raw();
  owned_.push_back(std::move(descriptor));
  return tensor;
}

CudnnTensor CudnnGraph::tensor(std::int64_t id, cudnnDataType_t type, const Extents& extents,
                               const Extents& strides) {
  return add_tensor({id, type, extents, strides, nullptr}, false, false);
}

CudnnTensor CudnnGraph::scalar(std::int64_t id) {
  return add_tensor({id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, nullptr}, false, true);
}

CudnnTensor CudnnGraph::inner(cudnnDataType_t type, const Extents& extents) {
  const Extents strides = {extents[1] * extents[2] * extents[3], extents[2] * extents[3], extents[3], 1};
  return add_tensor({next_inner_++, type, extents, strides, nullptr}, true, false);
}

CudnnTensor CudnnGraph::inner_like(cudnnDataType_t type, const Extents& extents, const Extents& strides) {
  return add_tensor({next_inner_++, type, extents, strides, nullptr}, true, false);
}

CudnnTensor CudnnGraph::inner_transposed(cudnnDataType_t type, const Extents& extents) {
  const std::int64_t plane = extents[2] * extents[3];
  return inner_like(type, extents, {extents[1] * plane, plane, 1, extents[2]});
}

void CudnnGraph::keep_op(CudnnDescriptor op) {
  ops_.push_back(op.raw());
  owned_.push_back(std::move(op));
}

void CudnnGraph::multiply(const CudnnTensor& a, const CudnnTensor& b, const CudnnTensor& c) {
  const cudnnDataType_t math = CUDNN_DATA_FLOAT;
  CudnnDescriptor product = make(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
  set(product.raw(), CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &math);
  finish(product, "matmul");
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
  const cudnnBackendDescriptor_t raw = product.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_MATMUL_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  finish(op, "matmul operation");
  owned_.push_back(std::move(product));
  keep_op(std::move(op));
}

CudnnDescriptor CudnnGraph::point_descriptor(cudnnPointwiseMode_t mode, cudnnDataType_t math,
                                             std::int64_t axis) {
  CudnnDescriptor point = make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  set(point.raw(), CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
  set(point.raw(), CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &math);
  if (axis >= 0) set(point.raw(), CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, 1, &axis);
  finish(point, "point-wise");
  return point;
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& y,
                           cudnnDataType_t math) {
  CudnnDescriptor point = point_descriptor(mode, math, -1);
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = point.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(op, "point-wise operation");
  owned_.push_back(std::move(point));
  keep_op(std::move(op));
}

void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const CudnnTensor& x, const CudnnTensor& b,
                           const CudnnTensor& y, cudnnDataType_t math) {
  CudnnDescriptor point = point_descriptor(mode, math, -1);
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = point.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(op, "point-wise operation");
  owned_.push_back(std::move(point));
  keep_op(std::move(op));
}

void CudnnGraph::select(const CudnnTensor& x, const CudnnTensor& b, const CudnnTensor& select,
                        const CudnnTensor& y) {
  CudnnDescriptor point = point_descriptor(CUDNN_POINTWISE_BINARY_SELECT, CUDNN_DATA_FLOAT, -1);
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = point.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_TDESC, select);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(op, "select operation");
  owned_.push_back(std::move(point));
  keep_op(std::move(op));
}

void CudnnGraph::index(const CudnnTensor& x, std::int64_t axis, const CudnnTensor& y) {
  CudnnDescriptor point = point_descriptor(CUDNN_POINTWISE_GEN_INDEX, CUDNN_DATA_FLOAT, axis);
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = point.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
  finish(op, "index operation");
  owned_.push_back(std::move(point));
  keep_op(std::move(op));
}

void CudnnGraph::reduce(cudnnReduceTensorOp_t kind, const CudnnTensor& x, const CudnnTensor& y) {
  const cudnnDataType_t math = CUDNN_DATA_FLOAT;
  CudnnDescriptor reduction = make(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
  set(reduction.raw(), CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &math);
  set(reduction.raw(), CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &kind);
  finish(reduction, "reduction");
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw = reduction.raw();
  set(op.raw(), CUDNN_ATTR_OPERATION_REDUCTION_DESC, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
  finish(op, "reduction operation");
  owned_.push_back(std::move(reduction));
  keep_op(std::move(op));
}

void CudnnGraph::reshape(const CudnnTensor& x, const CudnnTensor& y) {
  CudnnDescriptor op = make(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x);
  set_tensor(op.raw(), CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
  finish(op, "reshape operation");
  keep_op(std::move(op));
}

bool CudnnGraph::sums_atomically(cudnnBackendDescriptor_t engine_config) {
  cudnnBackendDescriptor_t raw = nullptr;
  if (functions_.create_descriptor(CUDNN_BACKEND_ENGINE_DESCRIPTOR, &raw) != CUDNN_STATUS_SUCCESS)
    return true;
  const CudnnDescriptor engine(functions_, raw);
  std::int64_t count = 0;
  if (functions_.get_attribute(engine_config, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1,
                               &count, &raw) != CUDNN_STATUS_SUCCESS) {
    return true;
  }
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  if (functions_.get_attribute(raw, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                               CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes) != CUDNN_STATUS_SUCCESS) {
    return true;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    if (notes[i] == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) return true;
  }
  return false;
}

CudnnDescriptor CudnnGraph::plan(const CudnnTarget& target, bool deterministic, std::int64_t& bytes) {
  CudnnDescriptor graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  set(graph.raw(), CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
      static_cast<std::int64_t>(ops_.size()), ops_.data());
  if (target.handle != nullptr) {
    set(graph.raw(), CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  }
  finish(graph, "operation graph");
  CudnnDescriptor ranking = make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  const cudnnBackendDescriptor_t raw_graph = graph.raw();
  const cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
  set(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw_graph);
  set(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.device != nullptr) {
    set(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.device);
  }
  finish(ranking, "engine ranking");
  if (!error_.empty()) return {};

  std::int64_t count = 0;
  if (!note(functions_.get_attribute(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
            "engine ranking")) {
    return {};
  }
  std::vector<CudnnDescriptor> configs;
  std::vector<cudnnBackendDescriptor_t> raw_configs;
  for (std::int64_t i = 0; i < count; ++i) {
    configs.push_back(make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    raw_configs.push_back(configs.back().raw());
  }
  if (count == 0 || !error_.empty() ||
      !note(functions_.get_attribute(ranking.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                                     CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count, raw_configs.data()),
            "engine ranking")) {
    if (error_.empty()) error_ = "no engine for this graph";
    return {};
  }
  std::string refused = "every engine sums in no fixed order";
  for (std::int64_t i = 0; i < count; ++i) {
    const cudnnBackendDescriptor_t config = raw_configs[static_cast<std::size_t>(i)];
    if (deterministic && sums_atomically(config)) continue;
    CudnnDescriptor plan = make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    cudnnStatus_t status = target.device != nullptr
                               ? functions_.set_attribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP,
                                                          CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.device)
                               : functions_.set_attribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_HANDLE,
                                                          CUDNN_TYPE_HANDLE, 1, &target.handle);
    if (status == CUDNN_STATUS_SUCCESS) {
      status = functions_.set_attribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
                                        CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &config);
    }
    if (status == CUDNN_STATUS_SUCCESS) status = functions_.finalize(plan.raw());
    std::int64_t one = 0;
    if (status == CUDNN_STATUS_SUCCESS) {
      status = functions_.get_attribute(plan.raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                                        CUDNN_TYPE_INT64, 1, &one, &bytes);
    }
    if (status == CUDNN_STATUS_SUCCESS) return plan;
    refused = functions_.reason(status);
  }
  error_ = "no engine could be built: " + refused;
  return {};
}

}  // namespace capstan::runtime::cuda

#endif
