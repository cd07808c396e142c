#include <algorithm>
#include <cmath>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/inner_loops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// Columns whose gradient one task sums over all rows.
constexpr std::int64_t kNormColumns = 64;

template <typename C, bool kCentered>
void normalize(const OpCall& call) {
  const Operand &x = call.inputs[0], &y = call.outputs[0];
  const std::int64_t width = call.inputs[1].elements, rows = x.elements / width;
  const C eps = static_cast<C>(call.op->floating("eps")), count = static_cast<C>(width);
  std::vector<C> weight(static_cast<std::size_t>(width)), bias(static_cast<std::size_t>(width));
  load(call.inputs[1], 0, width, weight.data());
  if (kCentered) load(call.inputs[2], 0, width, bias.data());
  call.workers->for_ranges(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> in, out;
    for (std::int64_t row = begin; row < end; ++row) {
      const C* values = in.read(x, row * width, width);
      C* results = out.space(width);
      C mean = 0;
      if (kCentered) mean = sum_in_lanes<C>(width, [&](std::int64_t j) { return values[j]; }) / count;
      const C variance =
          sum_in_lanes<C>(width, [&](std::int64_t j) { return (values[j] - mean) * (values[j] - mean); }) /
          count;
      const C rstd = C(1) / std::sqrt(variance + eps);
      for (std::int64_t j = 0; j < width; ++j) {
        const C scaled = (values[j] - mean) * rstd * weight[static_cast<std::size_t>(j)];
        results[j] = kCentered ? scaled + bias[static_cast<std::size_t>(j)] : scaled;
      }
      store(y, row * width, width, results);
      if (kCentered) store_one(call.outputs[1], mean, row);
      store_one(call.outputs[kCentered ? 2 : 1], rstd, row);
    }
  });
}

template <typename C, bool kCentered>
void normalize_backward(const OpCall& call) {
  const Operand &dy = call.inputs[0], &x = call.inputs[1], &dx = call.outputs[0];
  const Operand& rstd = call.inputs[kCentered ? 4 : 3];
  const std::int64_t width = call.inputs[2].elements, rows = x.elements / width;
  const bool accumulate = call.op->boolean("accumulate_dx");
  const C count = static_cast<C>(width);
  std::vector<C> weight(static_cast<std::size_t>(width)),
      means(kCentered ? static_cast<std::size_t>(rows) : 0), rstds(static_cast<std::size_t>(rows));
  load(call.inputs[2], 0, width, weight.data());
  if (kCentered) load(call.inputs[3], 0, rows, means.data());
  load(rstd, 0, rows, rstds.data());
  const auto mean_of = [&](std::int64_t row) {
    return kCentered ? means[static_cast<std::size_t>(row)] : C(0);
  };

  // Weights first: dx may be the buffer of dy.
  call.workers->for_ranges(
      (width + kNormColumns - 1) / kNormColumns, 1, [&](std::int64_t begin, std::int64_t end) {
        C dy_part[kNormColumns], x_part[kNormColumns], dweight[kNormColumns], dbias[kNormColumns];
        for (std::int64_t chunk = begin; chunk < end; ++chunk) {
          const std::int64_t column = chunk * kNormColumns, columns = std::min(kNormColumns, width - column);
          load(call.outputs[1], column, columns, dweight);
          if (kCentered) load(call.outputs[2], column, columns, dbias);
          for (std::int64_t row = 0; row < rows; ++row) {
            load(dy, row * width + column, columns, dy_part);
            load(x, row * width + column, columns, x_part);
            const C mean = mean_of(row), scale = rstds[static_cast<std::size_t>(row)];
            for (std::int64_t j = 0; j < columns; ++j)
              dweight[j] += dy_part[j] * ((x_part[j] - mean) * scale);
            if (kCentered) {
              for (std::int64_t j = 0; j < columns; ++j) dbias[j] += dy_part[j];
            }
          }
          store(call.outputs[1], column, columns, dweight);
          if (kCentered) store(call.outputs[2], column, columns, dbias);
        }
      });

  call.workers->for_ranges(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> dy_row, x_row, old_row, out_row;
    for (std::int64_t row = begin; row < end; ++row) {
      const C* gradient = dy_row.read(dy, row * width, width);
      const C* values = x_row.read(x, row * width, width);
      const C* old = accumulate ? old_row.read(dx, row * width, width) : nullptr;
      C* results = out_row.space(width);
      const C mean = mean_of(row), scale = rstds[static_cast<std::size_t>(row)];
      const auto weighted = [&](std::int64_t j) { return gradient[j] * weight[static_cast<std::size_t>(j)]; };
      const auto normal = [&](std::int64_t j) { return (values[j] - mean) * scale; };
      const C along_normal =
          sum_in_lanes<C>(width, [&](std::int64_t j) { return weighted(j) * normal(j); }) / count;
      const C along_ones = kCentered ? sum_in_lanes<C>(width, weighted) / count : C(0);
      for (std::int64_t j = 0; j < width; ++j) {
        const C value = (weighted(j) - along_ones - normal(j) * along_normal) * scale;
        results[j] = accumulate ? old[j] + value : value;
      }
      store(dx, row * width, width, results);
    }
  });
}

}  // namespace

void rms_norm(const OpCall& call) {
  in_compute_type(call, [&](auto type) { normalize<decltype(type), false>(call); });
}
void layer_norm(const OpCall& call) {
  in_compute_type(call, [&](auto type) { normalize<decltype(type), true>(call); });
}
void rms_norm_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { normalize_backward<decltype(type), false>(call); });
}
void layer_norm_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { normalize_backward<decltype(type), true>(call); });
}

}  // namespace capstan::runtime::host
