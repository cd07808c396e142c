// Fused attention of cuDNN, through its backend graph API, where the library is found at run time
// (libcudnn.so.9; the build needs its headers only). Without it `open` gives null and the own kernels do the
// work. The log-sum-exp that the forward pass leaves is the one of docs/plan-format.md, so forward and
// backward may come from different places.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <string>

#include "runtime/device/outcome.h"
#include "runtime/ops/cuda_launch.h"

namespace capstan::runtime::cuda {

class CudnnLibrary {
 public:
  /// Null when the library, one of its functions or a device handle cannot be had; `why` then says it.
  /// CAPSTAN_CUDNN names the library's file; "off" leaves it out.
  static std::shared_ptr<CudnnLibrary> open(std::string& why);
  /// Plans for the device that cuDNN's own JSON describes; they can be built, not run. Needs no device.
  static std::shared_ptr<CudnnLibrary> open_described(const std::string& device_json, std::string& why);
  virtual ~CudnnLibrary() = default;
  virtual std::size_t version() const = 0;  ///< 91900 for 9.19.0
};

/// One attention shape, forward or backward, with its execution plan.
class CudnnAttention {
 public:
  /// Null when cuDNN has no engine for the shape; `why` then says it. Dropout is not taken: its random
  /// numbers would be other ones. `deterministic`: backward without atomic sums.
  static std::unique_ptr<CudnnAttention> build(const std::shared_ptr<CudnnLibrary>& library,
                                               const Attention& shape, bool backward, bool deterministic,
                                               std::string& why);
  virtual ~CudnnAttention() = default;

  virtual std::size_t workspace_bytes() const = 0;
  /// f32 elements that a backward pass with atomic sums needs for the query gradients; 0 otherwise.
  virtual std::size_t sum_floats() const = 0;
  virtual Status forward(cudaStream_t stream, const Attention& attention, void* workspace) = 0;
  /// `sums` holds sum_floats() floats.
  virtual Status backward(cudaStream_t stream, const AttentionBackward& attention, float* sums,
                          void* workspace) = 0;
};

}  // namespace capstan::runtime::cuda
