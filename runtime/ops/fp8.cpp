#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/device/workers.h"
#include "runtime/ops/host_ops.h"
#include "runtime/ops/storage.h"

namespace capstan::runtime {
namespace {

struct Format {
  int fraction_bits, bias;
  bool has_infinity;
};

Format format_of(plan::DType dtype) {
  return dtype == plan::DType::f8e4m3 ? Format{3, 7, false} : Format{2, 15, true};
}

}  // namespace

float widen_fp8(std::uint8_t bits, plan::DType dtype) {
  const Format format = format_of(dtype);
  const int magnitude = bits & 0x7f, fraction_mask = (1 << format.fraction_bits) - 1;
  const int exponent = magnitude >> format.fraction_bits, fraction = magnitude & fraction_mask;
  const float sign = (bits & 0x80) != 0 ? -1.0F : 1.0F;
  const int highest = 0x7f >> format.fraction_bits;
  if (!format.has_infinity && magnitude == 0x7f) return std::numeric_limits<float>::quiet_NaN();
  if (format.has_infinity && exponent == highest) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const int scale = (exponent == 0 ? 1 : exponent) - format.bias - format.fraction_bits;
  const int digits = exponent == 0 ? fraction : fraction + fraction_mask + 1;
  return sign * std::ldexp(static_cast<float>(digits), scale);
}

std::uint8_t round_to_fp8(float value, plan::DType dtype) {
  const Format format = format_of(dtype);
  const auto sign = static_cast<std::uint8_t>(std::signbit(value) ? 0x80 : 0);
  if (std::isnan(value)) return static_cast<std::uint8_t>(sign | 0x7f);
  const float magnitude = std::min(std::fabs(value), largest_fp8(dtype));
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude = m * 2^exponent, m in [0.5, 1)
  const int lowest = 1 - format.bias;
  const int scale = std::max(exponent - 1, lowest) - format.fraction_bits;
  // The division is exact; nearbyint rounds to nearest even in the default rounding mode.
  const float digits = std::nearbyint(std::ldexp(magnitude, -scale));
  const auto steps = static_cast<int>(digits);
  const int one = 1 << format.fraction_bits;
  // Digits that were rounded up to the next power of two carry into the exponent by themselves.
  const int bits = steps < one ? steps : (scale + format.fraction_bits + format.bias - 1) * one + steps;
  return static_cast<std::uint8_t>(sign | bits);
}

namespace host {

void quantize_fp8(const OpCall& call) {
  const Operand &x = call.inputs[0], &rows = call.outputs[0], &columns = call.outputs[1];
  const std::int64_t width = x.columns, height = x.rows();
  std::vector<float> largest_of_row(static_cast<std::size_t>(height));
  call.workers->for_ranges(height, 16, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<float> in;
    for (std::int64_t r = begin; r < end; ++r) {
      const float* values = in.read(x, r * width, width);
      float largest = 0;
      for (std::int64_t c = 0; c < width; ++c) largest = std::fmax(largest, std::fabs(values[c]));
      largest_of_row[static_cast<std::size_t>(r)] = largest;
    }
  });
  float largest = 0;
  for (const float one : largest_of_row) largest = std::fmax(largest, one);
  const float to_units = largest > 0 ? largest_fp8(rows.dtype) / largest : 1.0F;
  *call.outputs[2].as<float>() = largest > 0 ? largest / largest_fp8(rows.dtype) : 1.0F;
  call.workers->for_ranges(height, 16, [&](std::int64_t begin, std::int64_t end) {
    static thread_local Row<float> in;
    for (std::int64_t r = begin; r < end; ++r) {
      const float* values = in.read(x, r * width, width);
      for (std::int64_t c = 0; c < width; ++c) {
        const std::uint8_t bits = round_to_fp8(values[c] * to_units, rows.dtype);
        rows.as<std::uint8_t>()[r * width + c] = bits;
        columns.as<std::uint8_t>()[c * height + r] = bits;
      }
    }
  });
}

}  // namespace host
}  // namespace capstan::runtime
