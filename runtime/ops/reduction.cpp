#include <algorithm>
#include <cmath>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/inner_loops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

constexpr std::int64_t kSumChunk = 4096;
constexpr std::int64_t kSumColumns = 64;

/// Sum of term(element) over a buffer: chunks of fixed size, each in lanes, then the chunks in order, in f64.
template <typename C, typename Term>
double sum_of(const OpCall& call, const Operand& operand, Term term) {
  const std::int64_t chunks = (operand.elements + kSumChunk - 1) / kSumChunk;
  std::vector<double> partial(static_cast<std::size_t>(chunks));
  call.workers->for_ranges(chunks, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> row;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t at = chunk * kSumChunk, count = std::min(kSumChunk, operand.elements - at);
      const C* values = row.read(operand, at, count);
      partial[static_cast<std::size_t>(chunk)] =
          sum_in_lanes<double>(count, [&](std::int64_t i) { return term(values[i]); });
    }
  });
  double sum = 0;
  for (const double part : partial) sum += part;
  return sum;
}

void set_bit(const Operand& flags, int bit) {
  *flags.as<std::int32_t>() |= 1 << bit;
}

}  // namespace

void accumulate_loss(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    const double sum = sum_of<C>(call, call.inputs[0], [](C loss) { return static_cast<double>(loss); });
    const C loss = static_cast<C>(load_one<double>(call.outputs[0]) + call.op->floating("scale") * sum);
    store_one(call.outputs[0], loss);
    if (!std::isfinite(sum)) set_bit(call.outputs[1], 0);
  });
}

void grad_norm(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    double squares = 0;
    for (std::size_t i = 0; i + 1 < call.inputs.size(); ++i) {
      squares += sum_of<C>(call, call.inputs[i],
                           [](C x) { return static_cast<double>(x) * static_cast<double>(x); });
    }
    store_one(call.outputs[0], static_cast<C>(std::sqrt(squares)));
    if (!std::isfinite(squares)) set_bit(call.outputs[1], 1);
  });
}

void check_finite(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    const double bad = sum_of<C>(call, call.inputs[0], [](C x) { return std::isfinite(x) ? 0.0 : 1.0; });
    if (bad > 0) set_bit(call.outputs[0], static_cast<int>(call.op->integer("bit")));
  });
}

void bias_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    const Operand &dy = call.inputs[0], &dbias = call.outputs[0];
    const std::int64_t width = dbias.elements, rows = dy.elements / width;
    call.workers->for_ranges(
        (width + kSumColumns - 1) / kSumColumns, 1, [&](std::int64_t begin, std::int64_t end) {
          C sums[kSumColumns], part[kSumColumns];
          for (std::int64_t chunk = begin; chunk < end; ++chunk) {
            const std::int64_t column = chunk * kSumColumns, columns = std::min(kSumColumns, width - column);
            load(dbias, column, columns, sums);
            for (std::int64_t row = 0; row < rows; ++row) {
              load(dy, row * width + column, columns, part);
              for (std::int64_t j = 0; j < columns; ++j) sums[j] += part[j];
            }
            store(dbias, column, columns, sums);
          }
        });
  });
}

}  // namespace capstan::runtime::host
