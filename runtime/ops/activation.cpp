#include <algorithm>
#include <cmath>
#include <numbers>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime::host {
namespace {

template <typename C>
C sigmoid(C x) {
  return C(1) / (C(1) + std::exp(-x));
}

template <typename C>
void gate(const OpCall& call) {
  const Operand &gate_up = call.inputs[0], &h = call.outputs[0];
  const std::int64_t width = gate_up.columns / 2, rows = gate_up.rows();
  call.workers->for_ranges(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> in, out;
    for (std::int64_t row = begin; row < end; ++row) {
      const C* values = in.read(gate_up, row * 2 * width, 2 * width);
      C* results = out.space(width);
      for (std::int64_t j = 0; j < width; ++j)
        results[j] = values[j] * sigmoid(values[j]) * values[width + j];
      store(h, row * width, width, results);
    }
  });
}

template <typename C>
void gate_backward(const OpCall& call) {
  const Operand &dh = call.inputs[0], &gate_up = call.inputs[1], &dgate_up = call.outputs[0];
  const std::int64_t width = gate_up.columns / 2, rows = gate_up.rows();
  call.workers->for_ranges(rows, 8, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> gradient_row, in, out;
    for (std::int64_t row = begin; row < end; ++row) {
      const C* gradient = gradient_row.read(dh, row * width, width);
      const C* values = in.read(gate_up, row * 2 * width, 2 * width);
      C* results = out.space(2 * width);
      for (std::int64_t j = 0; j < width; ++j) {
        const C g = values[j], up = values[width + j], s = sigmoid(g);
        results[j] = gradient[j] * up * s * (C(1) + g * (C(1) - s));
        results[width + j] = gradient[j] * g * s;
      }
      store(dgate_up, row * 2 * width, 2 * width, results);
    }
  });
}

// The tanh form: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) (Hendrycks and Gimpel, 2016).
constexpr double kTanhScale = 0.7978845608028654, kTanhCubic = 0.044715;

template <typename C>
C gelu_value(C x, bool tanh_form) {
  if (tanh_form) return C(0.5) * x * (C(1) + std::tanh(C(kTanhScale) * (x + C(kTanhCubic) * x * x * x)));
  return C(0.5) * x * (C(1) + std::erf(x * C(1.0 / std::numbers::sqrt2)));
}

template <typename C>
C gelu_slope(C x, bool tanh_form) {
  if (tanh_form) {
    const C t = std::tanh(C(kTanhScale) * (x + C(kTanhCubic) * x * x * x));
    return C(0.5) * (C(1) + t) +
           C(0.5) * x * (C(1) - t * t) * C(kTanhScale) * (C(1) + C(3 * kTanhCubic) * x * x);
  }
  const C density = std::exp(C(-0.5) * x * x) * C(0.3989422804014327);  // 1/sqrt(2 pi)
  return C(0.5) * (C(1) + std::erf(x * C(1.0 / std::numbers::sqrt2))) + x * density;
}

// Elements of one range at a time: keeps the widened copies in cache.
constexpr std::int64_t kChunk = 1024;

/// results[i] = combine(first[i], second[i]); `second` is `first` for ops with one floating input.
template <typename C, typename Combine>
void pointwise(const OpCall& call, const Operand& first, const Operand& second, Combine combine) {
  const Operand& out = call.outputs[0];
  const std::int64_t chunks = (out.elements + kChunk - 1) / kChunk;
  call.workers->for_ranges(chunks, 4, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<C> left_row, right_row, out_row;
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      const std::int64_t at = chunk * kChunk, count = std::min(kChunk, out.elements - at);
      const C *left = left_row.read(first, at, count), *right = right_row.read(second, at, count);
      C* results = out_row.space(count);
      for (std::int64_t i = 0; i < count; ++i) results[i] = combine(left[i], right[i]);
      store(out, at, count, results);
    }
  });
}

}  // namespace

void swiglu(const OpCall& call) {
  in_compute_type(call, [&](auto type) { gate<decltype(type)>(call); });
}
void swiglu_backward(const OpCall& call) {
  in_compute_type(call, [&](auto type) { gate_backward<decltype(type)>(call); });
}
void gelu(const OpCall& call) {
  const bool tanh_form = call.op->boolean("tanh");
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    pointwise<C>(call, call.inputs[0], call.inputs[0], [=](C x, C) { return gelu_value(x, tanh_form); });
  });
}
void gelu_backward(const OpCall& call) {
  const bool tanh_form = call.op->boolean("tanh");
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    pointwise<C>(call, call.inputs[0], call.inputs[1],
                 [=](C dy, C x) { return dy * gelu_slope(x, tanh_form); });
  });
}
void add(const OpCall& call) {
  in_compute_type(call, [&](auto type) {
    using C = decltype(type);
    pointwise<C>(call, call.inputs[0], call.inputs[1], [](C a, C b) { return a + b; });
  });
}

}  // namespace capstan::runtime::host
