// Runs single ops of a sketched plan on the host backend, with buffers read and written as doubles.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/host_backend.h"
#include "runtime/load/check_op.h"
#include "runtime/ops/storage.h"
#include "tests/unit/runtime/plan_sketch.h"

namespace capstan::runtime::testing {

using Numbers = std::vector<double>;

/// Seeded numbers in [-1, 1).
inline Numbers some_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  Numbers numbers(static_cast<std::size_t>(count));
  for (double& number : numbers) number = static_cast<double>(generator()) / 2147483648.0 - 1.0;
  return numbers;
}

inline float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(std::uint32_t{bits} << 16);
}
/// Nearest bf16 by search over the two neighbours; independent of the runtime's rounding.
inline std::uint16_t to_bf16(double value) {
  const auto below =
      static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
  const std::uint16_t above = below + 1;
  const double low = std::fabs(value - from_bf16(below)), high = std::fabs(from_bf16(above) - value);
  if (low != high) return low < high ? below : above;
  return below % 2 == 0 ? below : above;
}

class OpHarness {
 public:
  /// Keeps its own copy of the plan; every op must be legal.
  explicit OpHarness(plan::Plan plan, unsigned threads = 2)
      : plan_(std::move(plan)), backend_(make_host_backend(threads)) {
    for (const plan::Op& op : plan_.ops) {
      const auto wrong = check_op(plan_, op);
      EXPECT_FALSE(wrong.has_value()) << plan::op_kind_name(op.kind) << ": " << wrong.value_or("");
    }
    EXPECT_TRUE(backend_->prepare(plan_).ok());
    EXPECT_TRUE(backend_->initialize().ok());
  }

  void set(BufferId id, const Numbers& numbers) {
    const plan::Buffer& buffer = plan_.buffers[id];
    ASSERT_EQ(static_cast<std::int64_t>(numbers.size()), buffer.elements()) << buffer.name;
    std::vector<std::byte> bytes(buffer.bytes());
    for (std::size_t i = 0; i < numbers.size(); ++i) write(bytes.data(), buffer.dtype, i, numbers[i]);
    ASSERT_TRUE(backend_->upload(id, bytes).ok());
  }
  Numbers get(BufferId id) {
    const plan::Buffer& buffer = plan_.buffers[id];
    std::vector<std::byte> bytes(buffer.bytes());
    EXPECT_TRUE(backend_->download(id, bytes).ok());
    Numbers numbers(static_cast<std::size_t>(buffer.elements()));
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = read(bytes.data(), buffer.dtype, i);
    return numbers;
  }
  void run(OpId op) { ASSERT_TRUE(backend_->run(op).ok()); }
  void run_all() {
    for (const plan::Op& op : plan_.ops) run(op.id);
  }
  Backend& backend() { return *backend_; }
  const plan::Plan& plan() const { return plan_; }

 private:
  template <typename T>
  static void put(std::byte* at, std::size_t i, T value) {
    std::memcpy(at + i * sizeof(T), &value, sizeof(T));
  }
  template <typename T>
  static T take(const std::byte* at, std::size_t i) {
    T value;
    std::memcpy(&value, at + i * sizeof(T), sizeof(T));
    return value;
  }
  static void write(std::byte* at, DType dtype, std::size_t i, double value) {
    switch (dtype) {
      case DType::f32:
        return put(at, i, static_cast<float>(value));
      case DType::f64:
        return put(at, i, value);
      case DType::bf16:
        return put(at, i, to_bf16(value));
      case DType::i32:
        return put(at, i, static_cast<std::int32_t>(value));
      case DType::i64:
        return put(at, i, static_cast<std::int64_t>(value));
      case DType::u64:
        return put(at, i, static_cast<std::uint64_t>(value));
      default:
        FAIL() << "no such test buffer";
    }
  }
  static double read(const std::byte* at, DType dtype, std::size_t i) {
    switch (dtype) {
      case DType::f32:
        return take<float>(at, i);
      case DType::f64:
        return take<double>(at, i);
      case DType::bf16:
        return from_bf16(take<std::uint16_t>(at, i));
      case DType::i32:
        return take<std::int32_t>(at, i);
      case DType::i64:
        return static_cast<double>(take<std::int64_t>(at, i));
      case DType::u64:
        return static_cast<double>(take<std::uint64_t>(at, i));
      case DType::f8e4m3:
      case DType::f8e5m2:
        return widen_fp8(take<std::uint8_t>(at, i), dtype);
      default:
        ADD_FAILURE() << "no such test buffer";
        return 0;
    }
  }

  plan::Plan plan_;
  std::unique_ptr<Backend> backend_;
};

/// What a buffer of this type holds after writing: the numbers rounded to it.
inline Numbers rounded(Numbers numbers, DType dtype) {
  for (double& number : numbers) {
    if (dtype == DType::f32) number = static_cast<float>(number);
    if (dtype == DType::bf16) number = from_bf16(to_bf16(number));
  }
  return numbers;
}

inline void expect_near(const Numbers& got, const Numbers& want, double tolerance, const char* what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], want[i], tolerance * (1.0 + std::fabs(want[i]))) << what << "[" << i << "]";
  }
}

}  // namespace capstan::runtime::testing
