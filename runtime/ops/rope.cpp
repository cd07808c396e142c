#include <algorithm>
#include <cmath>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

template <typename C>
void rotate(const OpCall& call) {
  const plan::Op& op = *call.op;
  const std::int64_t rotated_heads = op.integer("heads") + op.integer("kv_heads");
  const std::int64_t head_dim = op.integer("head_dim"), half = op.integer("rotary_dim") / 2;
  const std::int64_t width = (rotated_heads + op.integer("kv_heads")) * head_dim,
                     length = op.integer("seq_length");
  const std::int64_t tokens = call.outputs[0].elements / width;
  const bool interleaved = op.boolean("interleaved");
  const double base = op.floating("base"), direction = op.boolean("inverse") ? -1.0 : 1.0;
  std::vector<double> frequency(static_cast<std::size_t>(half));
  for (std::int64_t i = 0; i < half; ++i) {
    frequency[static_cast<std::size_t>(i)] =
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(2 * half));
  }
  // One task turns every sequence at its positions, so each angle is computed once.
  call.workers->for_ranges(std::min(length, tokens), 4, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> cosines, sines, values;
    for (std::int64_t position = begin; position < end; ++position) {
      C *cosine = cosines.space(half), *sine = sines.space(half);
      for (std::int64_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(position) * frequency[static_cast<std::size_t>(i)];
        cosine[i] = static_cast<C>(std::cos(angle));
        sine[i] = static_cast<C>(direction * std::sin(angle));
      }
      for (std::int64_t t = position; t < tokens; t += length) {
        C* row = values.copy(call.outputs[0], t * width, rotated_heads * head_dim);
        for (std::int64_t h = 0; h < rotated_heads; ++h) {
          C* head = row + h * head_dim;
          for (std::int64_t i = 0; i < half; ++i) {
            C& first = interleaved ? head[2 * i] : head[i];
            C& second = interleaved ? head[2 * i + 1] : head[i + half];
            const C a = first, b = second;
            first = a * cosine[i] - b * sine[i];
            second = b * cosine[i] + a * sine[i];
          }
        }
        store(call.outputs[0], t * width, rotated_heads * head_dim, row);
      }
    }
  });
}

}  // namespace

void rope(const OpCall& call) {
  in_compute_type(call, [&](auto type) { rotate<decltype(type)>(call); });
}

}  // namespace capstan::runtime::host
