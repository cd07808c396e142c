#include <algorithm>
#include <numeric>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// The data readers refuse tokens beyond the vocabulary. A plan that lets other ops write `tokens` still must
// not make an op read outside its table: such a token counts as the table's last row.
std::int64_t table_row(std::int32_t token, std::int64_t rows) {
  return token < 0 || token >= rows ? rows - 1 : token;
}

template <typename C>
void look_up(const OpCall& call) {
  const Operand &tokens = call.inputs[0], &table = call.inputs[1], &x = call.outputs[0];
  const bool positions = call.inputs.size() > 2;
  const std::int64_t width = table.columns, length = call.dims->seq_length;
  call.workers->for_ranges(tokens.elements, 16, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> sum, position;
    for (std::int64_t t = begin; t < end; ++t) {
      C* row = sum.copy(table, table_row(tokens.as<std::int32_t>()[t], table.rows()) * width, width);
      if (positions) {
        const C* added = position.read(call.inputs[2], t % length * width, width);
        for (std::int64_t j = 0; j < width; ++j) row[j] += added[j];
      }
      store(x, t * width, width, row);
    }
  });
}

template <typename C>
void look_up_backward(const OpCall& call) {
  const Operand &dx = call.inputs[0], &tokens = call.inputs[1], &dtable = call.outputs[0];
  const std::int64_t width = dtable.columns, count = tokens.elements;
  // Places of each token together, in token order; one task sums all rows of one token and rounds once.
  std::vector<std::int64_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  const auto row_of = [&](std::int64_t place) {
    return table_row(tokens.as<std::int32_t>()[place], dtable.rows());
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::int64_t a, std::int64_t b) { return row_of(a) < row_of(b); });
  std::vector<std::size_t> starts;
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (i == 0 || row_of(order[i]) != row_of(order[i - 1])) starts.push_back(i);
  }
  starts.push_back(order.size());
  call.workers->for_ranges(static_cast<std::int64_t>(starts.size()) - 1, 8,
                           [&](std::int64_t begin, std::int64_t end) {
                             static thread_local Row<C> sum, gradient;
                             for (std::int64_t group = begin; group < end; ++group) {
                               const std::size_t first = starts[static_cast<std::size_t>(group)],
                                                 last = starts[static_cast<std::size_t>(group) + 1];
                               const std::int64_t offset = row_of(order[first]) * width;
                               C* row = sum.copy(dtable, offset, width);
                               for (std::size_t i = first; i < last; ++i) {
                                 const C* added = gradient.read(dx, order[i] * width, width);
                                 for (std::int64_t j = 0; j < width; ++j) row[j] += added[j];
                               }
                               store(dtable, offset, width, row);
                             }
                           });
  if (call.inputs.size() < 4) return;
  const Operand& dposition = call.outputs[1];
  const std::int64_t length = call.dims->seq_length;
  call.workers->for_ranges(length, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> sum, gradient;
    for (std::int64_t position = begin; position < end; ++position) {
      C* row = sum.copy(dposition, position * width, width);
      for (std::int64_t t = position; t < count; t += length) {
        const C* added = gradient.read(dx, t * width, width);
        for (std::int64_t j = 0; j < width; ++j) row[j] += added[j];
      }
      store(dposition, position * width, width, row);
    }
  });
}

}  // namespace

void embedding(const OpCall& call) {
  in_compute_type(call, [&](auto type) { look_up<decltype(type)>(call); });
}
void embedding_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { look_up_backward<decltype(type)>(call); });
}

}  // namespace capstan::runtime::host
