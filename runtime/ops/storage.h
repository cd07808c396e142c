// Between storage and arithmetic: reads f32, f64 or bf16 elements widened to the compute type C (float or
// double), and writes results rounded once to the storage type, to nearest even. NaN stays NaN.
#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "runtime/ops/op_call.h"

namespace capstan::runtime {

inline float widen_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

inline std::uint16_t round_to_bf16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);  // quiet NaN
  return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

/// The value of an fp8 number; saturating, rounded to nearest even, when made from a float. NaN stays NaN.
float widen_fp8(std::uint8_t bits, plan::DType format);
std::uint8_t round_to_fp8(float value, plan::DType format);
/// Largest finite value.
inline float largest_fp8(plan::DType format) {
  return format == plan::DType::f8e4m3 ? 448.0F : 57344.0F;
}

template <typename C>
void load(const Operand& from, std::int64_t offset, std::int64_t count, C* to) {
  switch (from.dtype) {
    case plan::DType::f32: {
      const float* data = from.as<float>() + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(data[i]);
      break;
    }
    case plan::DType::f64: {
      const double* data = from.as<double>() + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(data[i]);
      break;
    }
    case plan::DType::bf16: {
      const std::uint16_t* data = from.as<std::uint16_t>() + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(widen_bf16(data[i]));
      break;
    }
    case plan::DType::f8e4m3:
    case plan::DType::f8e5m2: {
      const std::uint8_t* data = from.as<std::uint8_t>() + offset;
      for (std::int64_t i = 0; i < count; ++i) to[i] = static_cast<C>(widen_fp8(data[i], from.dtype));
      break;
    }
    default:
      break;  // other types never reach floating-point operands: the host backend refuses f16 when it
              // prepares
  }
}

template <typename C>
void store(const Operand& to, std::int64_t offset, std::int64_t count, const C* from) {
  switch (to.dtype) {
    case plan::DType::f32: {
      float* data = to.as<float>() + offset;
      for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<float>(from[i]);
      break;
    }
    case plan::DType::f64: {
      double* data = to.as<double>() + offset;
      for (std::int64_t i = 0; i < count; ++i) data[i] = static_cast<double>(from[i]);
      break;
    }
    case plan::DType::bf16: {
      std::uint16_t* data = to.as<std::uint16_t>() + offset;
      for (std::int64_t i = 0; i < count; ++i) data[i] = round_to_bf16(static_cast<float>(from[i]));
      break;
    }
    default:
      break;
  }
}

template <typename C>
C load_one(const Operand& from, std::int64_t offset = 0) {
  C value{};
  load(from, offset, 1, &value);
  return value;
}

template <typename C>
void store_one(const Operand& to, C value, std::int64_t offset = 0) {
  store(to, offset, 1, &value);
}

/// Elements in the compute type: the buffer's own memory where the types agree, else a widened copy.
template <typename C>
class Row {
 public:
  const C* read(const Operand& from, std::int64_t offset, std::int64_t count) {
    constexpr plan::DType same = sizeof(C) == 8 ? plan::DType::f64 : plan::DType::f32;
    if (from.dtype == same) return from.as<C>() + offset;
    return copy(from, offset, count);
  }
  C* copy(const Operand& from, std::int64_t offset, std::int64_t count) {
    C* to = space(count);
    load(from, offset, count, to);
    return to;
  }
  C* space(std::int64_t count) {
    if (static_cast<std::int64_t>(values_.size()) < count) values_.resize(static_cast<std::size_t>(count));
    return values_.data();
  }

 private:
  std::vector<C> values_;
};

}  // namespace capstan::runtime
