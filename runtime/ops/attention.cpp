#include <cmath>
#include <limits>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/inner_loops.h"
#include "runtime/ops/philox.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

struct Shape {
  explicit Shape(const plan::Op& op)
      : batch(op.integer("batch")),
        length(op.integer("seq_length")),
        heads(op.integer("heads")),
        kv_heads(op.integer("kv_heads")),
        dim(op.integer("head_dim")),
        causal(op.boolean("causal")) {}

  std::int64_t batch, length, heads, kv_heads, dim;
  bool causal;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t qkv_width() const { return (heads + 2 * kv_heads) * dim; }
  /// Keys that query i sees.
  std::int64_t visible(std::int64_t i) const { return causal ? i + 1 : length; }
  std::int64_t query_at(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return (b * length + i) * qkv_width() + h * dim;
  }
  std::int64_t key_at(std::int64_t b, std::int64_t j, std::int64_t kv) const {
    return (b * length + j) * qkv_width() + (heads + kv) * dim;
  }
  std::int64_t value_at(std::int64_t b, std::int64_t j, std::int64_t kv) const {
    return (b * length + j) * qkv_width() + (heads + kv_heads + kv) * dim;
  }
  std::int64_t out_at(std::int64_t b, std::int64_t i, std::int64_t h) const {
    return ((b * length + i) * heads + h) * dim;
  }
  std::int64_t row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return (b * heads + h) * length + i;
  }
};

/// Keys or values of one head: as rows [length, dim], and turned [dim, length].
template <typename C>
struct HeadMatrix {
  std::vector<C> rows, turned;

  template <typename At>
  void fill(const Operand& qkv, const Shape& shape, At at) {
    rows.resize(static_cast<std::size_t>(shape.length * shape.dim));
    turned.resize(rows.size());
    for (std::int64_t j = 0; j < shape.length; ++j) {
      C* row = rows.data() + j * shape.dim;
      load(qkv, at(j), shape.dim, row);
      for (std::int64_t e = 0; e < shape.dim; ++e)
        turned[static_cast<std::size_t>(e * shape.length + j)] = row[e];
    }
  }
};

template <typename C>
void attend(const OpCall& call) {
  const Shape shape(*call.op);
  const Operand &qkv = call.inputs[0], &o = call.outputs[0], &lse = call.outputs[1];
  const C scale = static_cast<C>(call.op->floating("scale"));
  const DropoutMask mask(call, *call.inputs[1].as<std::uint64_t>());
  const std::int64_t length = shape.length, dim = shape.dim;
  call.workers->for_ranges(shape.batch * shape.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    static thread_local HeadMatrix<C> keys, values;
    static thread_local Row<C> query_row, score_row, factor_row, out_row;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t b = task / shape.kv_heads, kv = task % shape.kv_heads;
      keys.fill(qkv, shape, [&](std::int64_t j) { return shape.key_at(b, j, kv); });
      values.fill(qkv, shape, [&](std::int64_t j) { return shape.value_at(b, j, kv); });
      for (std::int64_t h = kv * shape.group(); h < (kv + 1) * shape.group(); ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t seen = shape.visible(i);
          const C* query = query_row.read(qkv, shape.query_at(b, i, h), dim);
          C *p = score_row.space(length), *out = out_row.space(dim);
          weighted_sum_of_rows(query, keys.turned.data(), length, dim, seen, p, false);
          C largest = -std::numeric_limits<C>::infinity();
          for (std::int64_t j = 0; j < seen; ++j) {
            p[j] *= scale;
            if (!(p[j] <= largest)) largest = p[j];  // a NaN wins and stays
          }
          for (std::int64_t j = 0; j < seen; ++j) p[j] = std::exp(p[j] - largest);
          const C sum = sum_in_lanes<C>(seen, [&](std::int64_t j) { return p[j]; });
          store_one(lse, largest + std::log(sum), shape.row(b, h, i));
          if (mask.active()) {
            C* factors = factor_row.space(length);
            mask.fill(static_cast<std::uint64_t>(shape.row(b, h, i) * length), seen, factors);
            for (std::int64_t j = 0; j < seen; ++j) p[j] *= factors[j];
          }
          weighted_sum_of_rows(p, values.rows.data(), dim, seen, dim, out, false);
          for (std::int64_t e = 0; e < dim; ++e) out[e] /= sum;
          store(o, shape.out_at(b, i, h), dim, out);
        }
      }
    }
  });
}

template <typename C>
void attend_backward(const OpCall& call) {
  const Shape shape(*call.op);
  const Operand &d_o = call.inputs[0], &qkv = call.inputs[1], &o = call.inputs[2], &lse = call.inputs[3];
  const Operand &dqkv = call.outputs[0], &delta = call.outputs[1];
  const C scale = static_cast<C>(call.op->floating("scale"));
  const DropoutMask mask(call, *call.inputs[4].as<std::uint64_t>());
  const std::int64_t length = shape.length, dim = shape.dim;
  call.workers->for_ranges(shape.batch * shape.kv_heads, 1, [&](std::int64_t begin, std::int64_t end) {
    static thread_local HeadMatrix<C> keys, values;
    static thread_local std::vector<C> dkeys, dvalues;
    static thread_local Row<C> query_row, score_row, factor_row, do_row, o_row, dp_row, dq_row;
    for (std::int64_t task = begin; task < end; ++task) {
      const std::int64_t b = task / shape.kv_heads, kv = task % shape.kv_heads;
      keys.fill(qkv, shape, [&](std::int64_t j) { return shape.key_at(b, j, kv); });
      values.fill(qkv, shape, [&](std::int64_t j) { return shape.value_at(b, j, kv); });
      dkeys.assign(static_cast<std::size_t>(length * dim), C(0));
      dvalues.assign(static_cast<std::size_t>(length * dim), C(0));
      for (std::int64_t h = kv * shape.group(); h < (kv + 1) * shape.group(); ++h) {
        for (std::int64_t i = 0; i < length; ++i) {
          const std::int64_t seen = shape.visible(i);
          const C* query = query_row.read(qkv, shape.query_at(b, i, h), dim);
          const C* gradient = do_row.read(d_o, shape.out_at(b, i, h), dim);
          const C* out = o_row.read(o, shape.out_at(b, i, h), dim);
          const C row_delta = sum_in_lanes<C>(dim, [&](std::int64_t e) { return gradient[e] * out[e]; });
          store_one(delta, row_delta, shape.row(b, h, i));
          const C row_lse = load_one<C>(lse, shape.row(b, h, i));
          C *p = score_row.space(length), *dp = dp_row.space(length), *dq = dq_row.space(dim);
          weighted_sum_of_rows(query, keys.turned.data(), length, dim, seen, p, false);
          for (std::int64_t j = 0; j < seen; ++j) p[j] = std::exp(p[j] * scale - row_lse);
          weighted_sum_of_rows(gradient, values.turned.data(), length, dim, seen, dp, false);
          if (mask.active()) {
            C* factors = factor_row.space(length);
            mask.fill(static_cast<std::uint64_t>(shape.row(b, h, i) * length), seen, factors);
            for (std::int64_t j = 0; j < seen; ++j) dp[j] *= factors[j];
            for (std::int64_t j = 0; j < seen; ++j) {
              const C kept = p[j] * factors[j];
              for (std::int64_t e = 0; e < dim; ++e)
                dvalues[static_cast<std::size_t>(j * dim + e)] += kept * gradient[e];
            }
          } else {
            for (std::int64_t j = 0; j < seen; ++j) {
              for (std::int64_t e = 0; e < dim; ++e)
                dvalues[static_cast<std::size_t>(j * dim + e)] += p[j] * gradient[e];
            }
          }
          // From here p holds the gradient of the unscaled scores.
          for (std::int64_t j = 0; j < seen; ++j) p[j] = p[j] * (dp[j] - row_delta) * scale;
          weighted_sum_of_rows(p, keys.rows.data(), dim, seen, dim, dq, false);
          store(dqkv, shape.query_at(b, i, h), dim, dq);
          for (std::int64_t j = 0; j < seen; ++j) {
            for (std::int64_t e = 0; e < dim; ++e)
              dkeys[static_cast<std::size_t>(j * dim + e)] += p[j] * query[e];
          }
        }
      }
      for (std::int64_t j = 0; j < length; ++j) {
        store(dqkv, shape.key_at(b, j, kv), dim, dkeys.data() + j * dim);
        store(dqkv, shape.value_at(b, j, kv), dim, dvalues.data() + j * dim);
      }
    }
  });
}

}  // namespace

void attention(const OpCall& call) {
  in_compute_type(call, [&](auto type) { attend<decltype(type)>(call); });
}
void attention_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { attend_backward<decltype(type)>(call); });
}

}  // namespace capstan::runtime::host
