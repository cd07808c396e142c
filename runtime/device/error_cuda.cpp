#include "runtime/device/cuda_error.h"

namespace capstan::runtime::cuda {
Arguments op_arguments(const plan::Op* op) {
  Arguments arguments;
  if (op == nullptr) return arguments;
  arguments.reserve(8);
  arguments.emplace_back("op", plan::op_kind_name(op->kind));
  arguments.emplace_back("op_id", static_cast<std::int64_t>(op->id));
  arguments.emplace_back("module", op->module);
  if (op->layer >= 0) arguments.emplace_back("layer", static_cast<std::int64_t>(op->layer));
  if (!op->key.empty()) arguments.emplace_back("key", op->key);
  return arguments;
}

std::string describe_op(const plan::Op& op) {
  std::string text = std::string("`") + plan::op_kind_name(op.kind) + "` (op " + std::to_string(op.id);
  if (op.layer >= 0) text += ", layer " + std::to_string(op.layer);
  if (!op.module.empty()) text += ", " + op.module;
  return text + ")";
}

Diagnostic device_failure(const std::string& call, const std::string& reason, const plan::Op* op) {
  std::string message = "`" + call + "` failed: " + reason;
  if (op != nullptr) message += ", in " + describe_op(*op);
  Arguments arguments = op_arguments(op);
  arguments.emplace_back("call", call);
  arguments.emplace_back("reason", reason);
  Diagnostic problem =
      run_problem("RN022", std::move(message), std::move(arguments),
                  "the state of the run on the device is lost; start again from the last checkpoint");
  if (op != nullptr && !op->key.empty()) problem.keys.push_back(op->key);
  return problem;
}

Diagnostic device_failure(const std::string& call, cudaError_t error, const plan::Op* op) {
  return device_failure(call, std::string(cudaGetErrorName(error)) + " (" + cudaGetErrorString(error) + ")",
                        op);
}

Diagnostic unsupported_op(const plan::Op& op, const std::string& why) {
  Arguments arguments = op_arguments(&op);
  arguments.emplace_back("why", why);
  Diagnostic problem = run_problem(
      "RN024", "the cuda backend cannot run " + describe_op(op) + ": " + why, std::move(arguments),
      "run the plan with `execute.backend = \"host\"`, or change the key that asks for it");
  if (!op.key.empty()) problem.keys.push_back(op.key);
  return problem;
}

}  // namespace capstan::runtime::cuda
