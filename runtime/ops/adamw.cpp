#include <algorithm>
#include <cmath>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

constexpr std::int64_t kUpdateChunk = 1024;

template <typename C>
void update(const OpCall& call) {
  const plan::Op& op = *call.op;
  if (*call.inputs[3].as<std::int32_t>() != 0)
    return;  // a step with a value that is not finite changes nothing
  const bool has_master = op.boolean("has_master");
  const double rate = load_one<double>(call.inputs[0]), norm = load_one<double>(call.inputs[2]);
  const double t = static_cast<double>(*call.inputs[1].as<std::int64_t>() + 1);
  const double beta1 = op.floating("beta1"), beta2 = op.floating("beta2"), clip = op.floating("clip_grad");
  const C gradient_scale = static_cast<C>(clip > 0 && norm > clip ? clip / (norm + 1e-6) : 1.0);
  const C step_size = static_cast<C>(rate), decay = static_cast<C>(op.floating("weight_decay"));
  const C keep1 = static_cast<C>(beta1), keep2 = static_cast<C>(beta2),
          eps = static_cast<C>(op.floating("eps"));
  const C new1 = static_cast<C>(1.0 - beta1), new2 = static_cast<C>(1.0 - beta2);
  const C correction1 = static_cast<C>(1.0 - std::pow(beta1, t)),
          correction2 = static_cast<C>(1.0 - std::pow(beta2, t));

  const std::size_t per_input = has_master ? 5 : 4;
  for (std::size_t first = 4; first < call.inputs.size(); first += per_input) {
    const Operand &parameter = call.inputs[first], &gradient = call.inputs[first + 1];
    const Operand &moment1 = call.inputs[first + 2], &moment2 = call.inputs[first + 3];
    const Operand& exact = has_master ? call.inputs[first + 4] : parameter;
    const std::int64_t chunks = (parameter.elements + kUpdateChunk - 1) / kUpdateChunk;
    call.workers->for_ranges(chunks, 8, [&](std::int64_t begin, std::int64_t end) {
      static thread_local Row<C> g_row, m_row, v_row, p_row;
      for (std::int64_t chunk = begin; chunk < end; ++chunk) {
        const std::int64_t at = chunk * kUpdateChunk, count = std::min(kUpdateChunk, parameter.elements - at);
        const C* g = g_row.read(gradient, at, count);
        C *m = m_row.copy(moment1, at, count), *v = v_row.copy(moment2, at, count),
          *p = p_row.copy(exact, at, count);
        for (std::int64_t i = 0; i < count; ++i) {
          const C scaled = g[i] * gradient_scale;
          m[i] = keep1 * m[i] + new1 * scaled;
          v[i] = keep2 * v[i] + new2 * scaled * scaled;
          p[i] -= step_size * (m[i] / correction1 / (std::sqrt(v[i] / correction2) + eps) + decay * p[i]);
        }
        store(moment1, at, count, m);
        store(moment2, at, count, v);
        store(exact, at, count, p);
        if (has_master) store(parameter, at, count, p);
      }
    });
  }
}

}  // namespace

void adamw(const OpCall& call) {
  in_compute_type(call, [&](auto type) { update<decltype(type)>(call); });
}

}  // namespace capstan::runtime::host
