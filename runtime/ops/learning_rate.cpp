#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// Source: Megatron Core, OptimizerParamScheduler.get_lr (core/optimizer_param_scheduler.py), in iterations.
double rate_at(const plan::Op& op, double iteration) {
  const double max_lr = op.floating("max_lr"), min_lr = op.floating("min_lr"),
               init_lr = op.floating("init_lr");
  const double warmup = static_cast<double>(op.integer("warmup_steps"));
  const double decay = static_cast<double>(op.integer("decay_steps"));
  const std::string& style = op.text("style");
  if (warmup > 0 && iteration <= warmup) return init_lr + (max_lr - init_lr) * iteration / warmup;
  if (style == "constant") return max_lr;
  if (iteration > decay) return min_lr;
  if (style == "inverse-square-root") {
    return std::max(min_lr, max_lr * std::sqrt(std::max(warmup, 1.0)) / std::sqrt(std::max(iteration, 1.0)));
  }
  const double span = decay - warmup;
  const double done = span > 0 ? std::clamp((iteration - warmup) / span, 0.0, 1.0) : 1.0;
  const double share = style == "linear" ? 1.0 - done : 0.5 * (std::cos(std::numbers::pi * done) + 1.0);
  return min_lr + share * (max_lr - min_lr);
}

}  // namespace

void learning_rate(const OpCall& call) {
  const std::int64_t step = *call.inputs[0].as<std::int64_t>();
  store_one(call.outputs[0], rate_at(*call.op, static_cast<double>(step + 1)));
}

}  // namespace capstan::runtime::host
