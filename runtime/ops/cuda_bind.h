// Resolves an op of a plan to device work: operands to pointers, attributes to launch parameters, matrix
// products and attention to prepared algorithms. The result issues the op on a stream; it allocates nothing
// and never waits, so it may run while the stream is being captured.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "compiler/plan/plan.h"
#include "runtime/device/outcome.h"
#include "runtime/ops/cuda_cudnn.h"
#include "runtime/ops/cuda_gemm.h"

namespace capstan::runtime::cuda {

using Launch = std::function<Status(cudaStream_t)>;

/// Where ops find memory and libraries. Owned by the backend; outlives every Launch.
struct Bindings {
  ~Bindings();
  Bindings() = default;
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  struct Region {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  const plan::Plan* plan = nullptr;
  std::byte* arena = nullptr;     ///< null until it is allocated; ops are bound afterwards
  cudaStream_t stream = nullptr;  ///< for measurements while binding
  std::unique_ptr<GemmLibrary> gemms;
  std::shared_ptr<CudnnLibrary> cudnn;  ///< null: own attention kernels
  std::map<std::string, std::unique_ptr<CudnnAttention>>
      attentions;  ///< by shape and direction; null: not for cuDNN
  /// For ops whose library needs more than the plan gives them (plans that were not made for CUDA give
  /// nothing). Sizes by find_extra_workspaces, memory by allocate_extra_workspaces.
  Region product_workspace, attention_workspace;
  std::map<std::string, void*> rope_angles;  ///< by shape; in `tables`
  std::vector<void*> tables;                 ///< device memory that binding allocated
  std::size_t table_bytes = 0;

  std::byte* at(plan::BufferId id) const {
    return arena == nullptr ? nullptr : arena + plan->buffers[id].offset;
  }
  /// Output `index` of the op when it has one more than it needs itself, else `otherwise`.
  Region workspace_of(const plan::Op& op, std::size_t index, const Region& otherwise) const;
  /// Device memory that lives as long as the bindings; `host` (may be null) is copied into it.
  Outcome<void*> add_table(const void* host, std::size_t bytes);
  /// Asks the libraries about every op; needs no arena. Afterwards the regions above have their sizes.
  Status find_extra_workspaces();
  std::size_t extra_bytes() const { return product_workspace.bytes + attention_workspace.bytes; }
  Status allocate_extra_workspaces();
};

/// RN024 when the backend has no implementation for the operands. Counts and sizes were checked by
/// load/check_op.
Outcome<Launch> bind_op(Bindings& bindings, const plan::Op& op);

// Parts of bind_op, by file.
Outcome<Launch> bind_gemm(Bindings& bindings, const plan::Op& op);
Outcome<Launch> bind_gemm_fp8(Bindings& bindings, const plan::Op& op);
Outcome<Launch> bind_quantize_fp8(Bindings& bindings, const plan::Op& op);
Outcome<Launch> bind_linear_cross_entropy(Bindings& bindings, const plan::Op& op);
/// An entry of the library, its candidates timed on random numbers, which overwrite the operands.
Outcome<int> prepare_product(Bindings& bindings, const GemmProblem& problem, const GemmOperands& operands);
Outcome<Launch> bind_attention(Bindings& bindings, const plan::Op& op);
/// Bytes that the op's library needs beyond what the plan gives the op.
Outcome<std::size_t> extra_attention_bytes(Bindings& bindings, const plan::Op& op);
Outcome<Launch> bind_optimizer(Bindings& bindings,
                               const plan::Op& op);  ///< adamw, grad_norm, zero, learning_rate

/// A floating-point operand; RN024 unless it is f32 or bf16.
Outcome<Floats> floats_of(const Bindings& bindings, const plan::Op& op, plan::BufferId id);
/// The dropout of an op with attributes p and rng_offset.
Dropout dropout_of(const Bindings& bindings, const plan::Op& op, plan::BufferId counter);

template <typename T>
T* pointer_of(const Bindings& bindings, plan::BufferId id) {
  return reinterpret_cast<T*>(bindings.at(id));
}

}  // namespace capstan::runtime::cuda
