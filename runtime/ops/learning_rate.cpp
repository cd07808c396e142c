#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// Source: Megatron Core, OptimizerParamScheduler.get_lr (core/optimizer_param_scheduler.py); `n` steps are
// done.
double rate_at(const plan::Op& op, double n) {
  const double max_lr = op.floating("max_lr"), min_lr = op.floating("min_lr"),
               init_lr = op.floating("init_lr");
  const double warmup = op.floating("warmup_steps"), decay = op.floating("decay_steps"),
               unit = op.floating("unit");
  const std::string& style = op.text("style");
  if (warmup > 0 && n <= warmup) return init_lr + (max_lr - init_lr) * n / warmup;
  if (style == "constant") return max_lr;
  if (n > decay) return min_lr;
  if (style == "inverse-square-root") {
    return std::max(min_lr, max_lr * std::sqrt(std::max(warmup, unit)) / std::sqrt(std::max(n, unit)));
  }
  // Here n <= decay, and warmup < n or warmup is 0: the span is empty only when all three are 0.
  const double span = decay - warmup;
  const double done = span > 0 ? (n - warmup) / span : 0.0;
  const double share = style == "linear" ? 1.0 - done : 0.5 * (std::cos(std::numbers::pi * done) + 1.0);
  return min_lr + share * (max_lr - min_lr);
}

}  // namespace

void learning_rate(const OpCall& call) {
  const std::int64_t step = *call.inputs[0].as<std::int64_t>();
  store_one(call.outputs[0], rate_at(*call.op, static_cast<double>(step)));
}

}  // namespace capstan::runtime::host
