#include <cmath>
#include <limits>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/inner_loops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// As in the embedding: a target beyond the vocabulary cannot come from a data reader and must not read out of
// bounds.
std::int64_t target_column(std::int32_t target, std::int64_t vocab) {
  return target < 0 || target >= vocab ? vocab - 1 : target;
}

template <typename C>
void forward(const OpCall& call) {
  const Operand &logits = call.inputs[0], &targets = call.inputs[1];
  const std::int64_t width = logits.columns, vocab = call.op->integer("vocab");
  call.workers->for_ranges(logits.rows(), 4, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> in, exponentials;
    for (std::int64_t t = begin; t < end; ++t) {
      const C* row = in.read(logits, t * width, vocab);
      C largest = -std::numeric_limits<C>::infinity();
      for (std::int64_t j = 0; j < vocab; ++j) {
        if (!(row[j] <= largest)) largest = row[j];  // a NaN wins and stays
      }
      C* terms = exponentials.space(vocab);
      for (std::int64_t j = 0; j < vocab; ++j) terms[j] = std::exp(row[j] - largest);
      const C sum = sum_in_lanes<C>(vocab, [&](std::int64_t j) { return terms[j]; });
      const C lse = largest + std::log(sum);
      store_one(call.outputs[0], lse - row[target_column(targets.as<std::int32_t>()[t], vocab)], t);
      store_one(call.outputs[1], lse, t);
    }
  });
}

template <typename C>
void backward(const OpCall& call) {
  const Operand &logits = call.inputs[0], &targets = call.inputs[1], &dlogits = call.outputs[0];
  const std::int64_t width = logits.columns, vocab = call.op->integer("vocab");
  const C scale = static_cast<C>(call.op->floating("scale"));
  call.workers->for_ranges(logits.rows(), 4, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> in, out;
    for (std::int64_t t = begin; t < end; ++t) {
      const C* row = in.read(logits, t * width, vocab);
      C* results = out.space(width);
      const C lse = load_one<C>(call.inputs[2], t);
      for (std::int64_t j = 0; j < vocab; ++j) results[j] = scale * std::exp(row[j] - lse);
      results[target_column(targets.as<std::int32_t>()[t], vocab)] -= scale;
      for (std::int64_t j = vocab; j < width; ++j) results[j] = C(0);
      store(dlogits, t * width, width, results);
    }
  });
}

}  // namespace

void cross_entropy(const OpCall& call) {
  in_compute_type(call, [&](auto type) { forward<decltype(type)>(call); });
}
void cross_entropy_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { backward<decltype(type)>(call); });
}

}  // namespace capstan::runtime::host
