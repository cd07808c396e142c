#include <algorithm>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/inner_loops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

// A task owns one block of the output; it packs the panels of a and b that it needs, so tasks share nothing.
constexpr std::int64_t kBlockRows = 96, kBlockColumns = 128, kBlockDepth = 256;

/// Packs op(matrix)[row .. row+rows, column .. column+columns] as panels of `panel` rows each, zero-padded:
/// panel after panel, within one a column after the other. `matrix` is stored [rows, columns], or the other
/// way round.
template <typename C>
void pack_row_panels(const Operand& matrix, bool transposed, std::int64_t ld, std::int64_t row,
                     std::int64_t rows, std::int64_t column, std::int64_t columns, std::int64_t panel,
                     std::vector<C>& line, C* to) {
  for (std::int64_t first = 0; first < rows; first += panel) {
    const std::int64_t height = std::min(panel, rows - first);
    C* out = to + first * columns;
    if (height < panel) std::fill(out, out + panel * columns, C(0));
    if (transposed) {
      for (std::int64_t p = 0; p < columns; ++p)
        load(matrix, (column + p) * ld + row + first, height, out + p * panel);
    } else {
      for (std::int64_t i = 0; i < height; ++i) {
        load(matrix, (row + first + i) * ld + column, columns, line.data());
        for (std::int64_t p = 0; p < columns; ++p) out[p * panel + i] = line[static_cast<std::size_t>(p)];
      }
    }
  }
}

template <typename C>
void multiply(const OpCall& call, bool transpose_a, bool transpose_b, std::size_t bias, C factor) {
  const plan::Op& op = *call.op;
  const std::int64_t m = op.integer("m"), n = op.integer("n"), k = op.integer("k");
  const bool accumulate = op.boolean("accumulate"), biased = op.text("epilogue") == "bias";
  const Operand &a = call.inputs[0], &b = call.inputs[1], &d = call.outputs[0];
  constexpr std::int64_t kColumns = tile_columns<C>();
  const std::int64_t row_blocks = (m + kBlockRows - 1) / kBlockRows;
  const std::int64_t column_blocks = (n + kBlockColumns - 1) / kBlockColumns;

  call.workers->for_ranges(row_blocks * column_blocks, 1, [&](std::int64_t begin, std::int64_t end) {
    static thread_local std::vector<C> a_panels(kBlockRows * kBlockDepth),
        b_panels(kBlockDepth * kBlockColumns), tile(kBlockRows * kBlockColumns),
        line(kBlockColumns + kBlockDepth);
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t row = block / column_blocks * kBlockRows,
                         column = block % column_blocks * kBlockColumns;
      const std::int64_t rows = std::min(kBlockRows, m - row), columns = std::min(kBlockColumns, n - column);
      std::fill(tile.begin(), tile.end(), C(0));
      for (std::int64_t p = 0; p < k; p += kBlockDepth) {
        const std::int64_t depth = std::min(kBlockDepth, k - p);
        pack_row_panels(a, transpose_a, transpose_a ? m : k, row, rows, p, depth, kTileRows, line,
                        a_panels.data());
        // b as [n, k] has the same layout as a as [m, k]: panels of columns are panels of rows of its
        // transpose.
        pack_row_panels(b, !transpose_b, transpose_b ? k : n, column, columns, p, depth, kColumns, line,
                        b_panels.data());
        for (std::int64_t j = 0; j < columns; j += kColumns) {
          for (std::int64_t i = 0; i < rows; i += kTileRows) {
            multiply_tile(a_panels.data() + i * depth, b_panels.data() + j * depth, depth,
                          tile.data() + i * kBlockColumns + j, kBlockColumns);
          }
        }
      }
      for (std::int64_t i = 0; i < rows; ++i) {
        C* sums = tile.data() + i * kBlockColumns;
        if (factor != C(1)) {
          for (std::int64_t j = 0; j < columns; ++j) sums[j] *= factor;
        }
        if (biased) {
          load(call.inputs[bias], column, columns, line.data());
          for (std::int64_t j = 0; j < columns; ++j) sums[j] += line[static_cast<std::size_t>(j)];
        }
        if (accumulate) {
          load(d, (row + i) * n + column, columns, line.data());
          for (std::int64_t j = 0; j < columns; ++j) sums[j] += line[static_cast<std::size_t>(j)];
        }
        store(d, (row + i) * n + column, columns, sums);
      }
    }
  });
}

}  // namespace

void gemm(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    multiply<decltype(type)>(call, call.op->boolean("transpose_a"), call.op->boolean("transpose_b"), 2, 1);
  });
}

void gemm_fp8(const OpCall& call) {
  const float factor = *call.inputs[2].as<float>() * *call.inputs[3].as<float>();
  multiply<float>(call, false, true, 4, factor);
}

}  // namespace capstan::runtime::host
