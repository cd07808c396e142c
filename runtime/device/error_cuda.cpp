#include "runtime/device/cuda_error.h"

namespace capstan::runtime::cuda {
namespace {

Arguments op_arguments(const plan::Op* op) {
  if (op == nullptr) return {};
  Arguments arguments = {{"op", Value(plan::op_kind_name(op->kind))},
                         {"op_id", Value(static_cast<std::int64_t>(op->id))},
                         {"module", Value(op->module)}};
  if (op->layer >= 0) arguments.emplace_back("layer", Value(static_cast<std::int64_t>(op->layer)));
  if (!op->key.empty()) arguments.emplace_back("key", Value(op->key));
  return arguments;
}

}  // namespace

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
  arguments.emplace_back("call", Value(call));
  arguments.emplace_back("reason", Value(reason));
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
  arguments.emplace_back("why", Value(why));
  Diagnostic problem = run_problem(
      "RN024", "the cuda backend cannot run " + describe_op(op) + ": " + why, std::move(arguments),
      "run the plan with `execute.backend = \"host\"`, or change the key that asks for it");
  if (!op.key.empty()) problem.keys.push_back(op.key);
  return problem;
}

}  // namespace capstan::runtime::cuda
