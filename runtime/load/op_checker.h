// What the checks of ops are written in: asks about operands and attributes of one op of a plan that was read
// from a file, and keeps the first answer that is wrong. For the check_op*.cpp files only.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "compiler/plan/plan.h"

namespace capstan::runtime::op_checks {

using plan::Buffer;
using plan::BufferId;
using plan::DType;
using plan::Op;
using plan::OpKind;
using plan::Plan;

inline bool is_floating(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16;
}

/// Product of non-negative factors; nothing when it leaves the range.
inline std::int64_t product(std::initializer_list<std::int64_t> factors) {
  std::int64_t result = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) return std::numeric_limits<std::int64_t>::max();
  }
  return result;
}

/// Checks of one op; the first one that fails is kept.
class Checker {
 public:
  Checker(const Plan& plan, const Op& op) : plan_(plan), op_(op) {}

  std::optional<std::string> wrong;

  std::size_t inputs() const { return op_.inputs.size(); }
  std::size_t outputs() const { return op_.outputs.size(); }
  const Buffer& input(std::size_t i) const { return plan_.buffers[op_.inputs[i]]; }
  const Buffer& output(std::size_t i) const { return plan_.buffers[op_.outputs[i]]; }
  bool ok() const { return !wrong.has_value(); }
  void fail(std::string text) {
    if (ok()) wrong = std::move(text);
  }

  void counts(std::size_t min_in, std::size_t max_in, std::size_t min_out, std::size_t max_out) {
    const auto count = [&](const char* what, std::size_t has, std::size_t low, std::size_t high) {
      if (has >= low && has <= high) return;
      fail(low == high ? fmt::format("has {} {}, needs {}", has, what, low)
                       : fmt::format("has {} {}, needs {} to {}", has, what, low, high));
    };
    count("inputs", inputs(), min_in, max_in);
    count("outputs", outputs(), min_out, max_out);
  }

  std::int64_t integer(const char* name, std::int64_t low, std::int64_t high) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), low;
    const std::int64_t* number = std::get_if<std::int64_t>(value);
    if (number == nullptr) return fail(fmt::format("attribute `{}` must be an integer", name)), low;
    if (*number < low || *number > high) {
      return fail(fmt::format("attribute `{}` is {}, must be between {} and {}", name, *number, low, high)),
             low;
    }
    return *number;
  }
  std::int64_t extent(const char* name) { return integer(name, 1, std::int64_t{1} << 40); }
  double floating(const char* name, double low, double high) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), low;
    const double* number = std::get_if<double>(value);
    if (number == nullptr)
      return fail(fmt::format("attribute `{}` must be a floating-point number", name)), low;
    if (!(*number >= low && *number <= high)) {
      return fail(fmt::format("attribute `{}` is {}, must be between {} and {}", name, *number, low, high)),
             low;
    }
    return *number;
  }
  bool boolean(const char* name) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), false;
    const bool* flag = std::get_if<bool>(value);
    if (flag == nullptr) return fail(fmt::format("attribute `{}` must be a boolean", name)), false;
    return *flag;
  }
  std::string text(const char* name, std::initializer_list<const char*> options) {
    const plan::AttributeValue* value = op_.find(name);
    if (value == nullptr) return missing(name), std::string();
    const std::string* word = std::get_if<std::string>(value);
    if (word == nullptr || std::find(options.begin(), options.end(), *word) == options.end()) {
      return fail(fmt::format("attribute `{}` has no known value", name)), std::string();
    }
    return *word;
  }

  /// `where` reads "input 2" in messages.
  void is_float(const Buffer& buffer, const std::string& where) {
    if (!is_floating(buffer.dtype))
      fail(fmt::format("{} `{}` must hold floating-point numbers", where, buffer.name));
  }
  void is_type(const Buffer& buffer, const std::string& where, DType dtype) {
    if (buffer.dtype != dtype) {
      fail(fmt::format("{} `{}` is {}, must be {}", where, buffer.name, plan::dtype_name(buffer.dtype),
                       plan::dtype_name(dtype)));
    }
  }
  void has(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    if (buffer.elements() != elements) {
      fail(fmt::format("{} `{}` has {} elements, needs {}", where, buffer.name, buffer.elements(), elements));
    }
  }
  void float_in(std::size_t i, std::int64_t elements) {
    float_at(input(i), fmt::format("input {}", i), elements);
  }
  void float_out(std::size_t i, std::int64_t elements) {
    float_at(output(i), fmt::format("output {}", i), elements);
  }
  void type_in(std::size_t i, DType dtype, std::int64_t elements) {
    is_type(input(i), fmt::format("input {}", i), dtype);
    has(input(i), fmt::format("input {}", i), elements);
  }
  void type_out(std::size_t i, DType dtype, std::int64_t elements) {
    is_type(output(i), fmt::format("output {}", i), dtype);
    has(output(i), fmt::format("output {}", i), elements);
  }
  /// Output o is the buffer of input i (updated in place).
  void same(std::size_t o, std::size_t i) {
    if (op_.outputs[o] != op_.inputs[i]) {
      fail(fmt::format("output {} must be the buffer of input {}, which it updates", o, i));
    }
  }
  void dropout_attributes() {
    floating("p", 0.0, std::nextafter(1.0, 0.0));
    integer("rng_offset", 0, std::numeric_limits<std::uint32_t>::max());
  }
  void quantized(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    if (buffer.dtype != DType::f8e4m3 && buffer.dtype != DType::f8e5m2)
      fail(fmt::format("{} `{}` must hold fp8 numbers", where, buffer.name));
    has(buffer, where, elements);
  }
  void counter_in(std::size_t i) { type_in(i, DType::u64, 1); }
  /// Scratch of at least the size that the format gives it.
  void scratch_out(std::size_t i, std::int64_t elements) {
    is_float(output(i), fmt::format("output {}", i));
    has_at_least(output(i), fmt::format("output {}", i), elements);
  }
  /// Output i, where there is one more than the op itself needs: bytes for a library of the device.
  void takes_library_workspace(std::size_t i) {
    if (i < outputs()) is_type(output(i), fmt::format("output {}", i), DType::u8);
  }
  void has_at_least(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    if (buffer.elements() < elements) {
      fail(fmt::format("{} `{}` has {} elements, needs at least {}", where, buffer.name, buffer.elements(),
                       elements));
    }
  }

  const Plan& plan() const { return plan_; }

 private:
  void missing(const char* name) { fail(fmt::format("lacks the attribute `{}`", name)); }
  void float_at(const Buffer& buffer, const std::string& where, std::int64_t elements) {
    is_float(buffer, where);
    has(buffer, where, elements);
  }

  const Plan& plan_;
  const Op& op_;
};

inline std::int64_t last_extent(const Buffer& buffer) {
  return buffer.shape.back();
}
inline std::int64_t rows(const Buffer& buffer) {
  return buffer.elements() / last_extent(buffer);
}

/// Rows of the partial sums of a column sum over `count` rows.
inline std::int64_t row_chunks(std::int64_t count) {
  return std::min<std::int64_t>(256, (count + 15) / 16);
}

// check_op_products.cpp
void check_gemm(Checker& c);
void check_fused_gemm(Checker& c, OpKind kind);
void check_quantize_fp8(Checker& c);
void check_gemm_fp8(Checker& c);
void check_rope(Checker& c);
void check_attention(Checker& c, bool backward);
void check_linear_cross_entropy(Checker& c);

}  // namespace capstan::runtime::op_checks
