// CUDA and library errors as diagnostics: which call failed, with what, for which op. Device errors are
// RN022; what has no implementation is RN024.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "compiler/plan/plan.h"
#include "runtime/device/outcome.h"

namespace capstan::runtime::cuda {

/// "`attention_backward` (op 41, layer 3, attn)", for messages.
std::string describe_op(const plan::Op& op);
/// What a diagnostic says of an op: kind, id, module, layer and config key, as far as it has them; `op` may
/// be null.
Arguments op_arguments(const plan::Op* op);

/// RN022 for a failed call; `op` may be null.
Diagnostic device_failure(const std::string& call, const std::string& reason, const plan::Op* op = nullptr);
Diagnostic device_failure(const std::string& call, cudaError_t error, const plan::Op* op = nullptr);

/// RN024: `why` names the operand or attribute in the way.
Diagnostic unsupported_op(const plan::Op& op, const std::string& why);

inline Status check(cudaError_t error, const char* call, const plan::Op* op = nullptr) {
  if (error == cudaSuccess) return {};
  return device_failure(call, error, op);
}

}  // namespace capstan::runtime::cuda
