// Runs one plan on the CUDA backend and on the host reference with the same inputs, and compares what the ops
// wrote. Tests that need a device begin with CAPSTAN_NEED_DEVICE(), which skips them, visibly, where there is
// none.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/device/cuda_backend.h"
#include "runtime/device/host_backend.h"
#include "runtime/load/check_op.h"
#include "runtime/ops/storage.h"
#include "tests/unit/runtime/plan_sketch.h"

namespace capstan::runtime::testing {

/// Empty when a device can be used; else why not.
inline const std::string& no_device_reason() {
  static const std::string reason = [] {
    auto backend = make_cuda_backend();
    return backend.ok() ? std::string() : backend.error().message;
  }();
  return reason;
}

#define CAPSTAN_NEED_DEVICE() \
  if (!no_device_reason().empty()) GTEST_SKIP() << no_device_reason()

inline std::uint16_t narrow_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

inline std::vector<double> to_numbers(const std::vector<std::byte>& bytes, DType dtype) {
  std::vector<double> numbers(bytes.size() / plan::size_of(dtype));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::byte* at = bytes.data() + i * plan::size_of(dtype);
    const auto take = [&](auto value) {
      std::memcpy(&value, at, sizeof(value));
      return value;
    };
    switch (dtype) {
      case DType::f32:
        numbers[i] = take(float{});
        break;
      case DType::bf16:
        numbers[i] = widen_bf16(take(std::uint16_t{}));
        break;
      case DType::f8e4m3:
      case DType::f8e5m2:
        numbers[i] = widen_fp8(take(std::uint8_t{}), dtype);
        break;
      case DType::i32:
        numbers[i] = take(std::int32_t{});
        break;
      case DType::i64:
        numbers[i] = static_cast<double>(take(std::int64_t{}));
        break;
      case DType::u64:
        numbers[i] = static_cast<double>(take(std::uint64_t{}));
        break;
      default:
        ADD_FAILURE() << "no such test buffer";
    }
  }
  return numbers;
}

class DevicePair {
 public:
  explicit DevicePair(plan::Plan plan, unsigned seed = 1) : plan_(std::move(plan)), random_(seed) {
    for (const plan::Op& op : plan_.ops) {
      const auto wrong = check_op(plan_, op);
      EXPECT_FALSE(wrong.has_value()) << plan::op_kind_name(op.kind) << ": " << wrong.value_or("");
    }
    host_ = make_host_backend(2);
    auto opened = make_cuda_backend();
    EXPECT_TRUE(opened.ok());
    cuda_ = std::move(opened.value());
    for (Backend* backend : {host_.get(), cuda_.get()}) {
      const Status prepared = backend->prepare(plan_);
      EXPECT_TRUE(prepared.ok()) << prepared.error().message;
      const Status initialized = backend->initialize();
      EXPECT_TRUE(initialized.ok()) << initialized.error().message;
    }
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.dtype == DType::f32 || buffer.dtype == DType::bf16) fill_uniform(buffer.id, -1.0F, 1.0F);
    }
  }

  void fill_uniform(BufferId id, float low, float high) {
    std::uniform_real_distribution<float> draw(low, high);
    std::vector<float> values(static_cast<std::size_t>(plan_.buffers[id].elements()));
    for (float& value : values) value = draw(random_);
    set_floats(id, values);
  }
  void fill_tokens(BufferId id, std::int32_t vocab) {
    std::vector<std::int32_t> values(static_cast<std::size_t>(plan_.buffers[id].elements()));
    for (std::int32_t& value : values)
      value = static_cast<std::int32_t>(random_() % static_cast<unsigned>(vocab));
    set_bytes(id, values.data(), values.size() * sizeof(std::int32_t));
  }
  void set_floats(BufferId id, const std::vector<float>& values) {
    if (plan_.buffers[id].dtype == DType::f32)
      return set_bytes(id, values.data(), values.size() * sizeof(float));
    std::vector<std::uint16_t> narrow(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) narrow[i] = narrow_bf16(values[i]);
    set_bytes(id, narrow.data(), narrow.size() * sizeof(std::uint16_t));
  }
  template <typename T>
  void set_one(BufferId id, T value) {
    set_bytes(id, &value, sizeof(value));
  }
  void set_bytes(BufferId id, const void* data, std::size_t size) {
    ASSERT_EQ(size, plan_.buffers[id].bytes());
    const std::span<const std::byte> bytes(static_cast<const std::byte*>(data), size);
    ASSERT_TRUE(host_->upload(id, bytes).ok());
    ASSERT_TRUE(cuda_->upload(id, bytes).ok());
  }

  std::vector<std::byte> bytes_of(Backend& backend, BufferId id) const {
    std::vector<std::byte> bytes(plan_.buffers[id].bytes());
    const Status read = backend.download(id, bytes);
    EXPECT_TRUE(read.ok()) << read.error().message;
    return bytes;
  }

  void run() {
    for (const plan::Op& op : plan_.ops) {
      ASSERT_TRUE(host_->run(op.id).ok());
      const Status ran = cuda_->run(op.id);
      ASSERT_TRUE(ran.ok()) << ran.error().message;
    }
    const Status finished = cuda_->synchronize();
    ASSERT_TRUE(finished.ok()) << finished.error().message;
  }

  /// Runs all ops on both and compares every output that is no workspace: |got - want| over |want| (both as
  /// vectors) at most `tolerance`, and no element off by more than 40 times that share of the largest one.
  /// NaN never passes.
  void run_and_compare(double tolerance, const std::string& what) {
    run();
    for (const plan::Op& op : plan_.ops) {
      for (const BufferId id : op.outputs) compare(id, tolerance, what);
    }
  }
  void compare(BufferId id, double tolerance, const std::string& what) {
    const plan::Buffer& buffer = plan_.buffers[id];
    if (buffer.role == plan::Role::workspace) return;
    const std::vector<double> want = to_numbers(bytes_of(*host_, id), buffer.dtype);
    const std::vector<double> got = to_numbers(bytes_of(*cuda_, id), buffer.dtype);
    double difference = 0;
    double length = 0;
    double largest = 0;
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      const double off = std::fabs(got[i] - want[i]);
      ASSERT_FALSE(std::isnan(off)) << what << ": `" << buffer.name << "`[" << i << "] is " << got[i]
                                    << ", want " << want[i];
      difference += off * off;
      length += want[i] * want[i];
      largest = std::max(largest, std::fabs(want[i]));
      worst = std::max(worst, off);
    }
    const bool exact = buffer.dtype != DType::f32 && buffer.dtype != DType::bf16;
    if (exact) {
      EXPECT_EQ(worst, 0.0) << what << ": `" << buffer.name << "`";
      return;
    }
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(length) + 1e-12)
        << what << ": `" << buffer.name << "`";
    EXPECT_LE(worst, 40 * tolerance * largest + 1e-12) << what << ": `" << buffer.name << "`";
  }

  Backend& host() { return *host_; }
  Backend& cuda() { return *cuda_; }
  const plan::Plan& plan() const { return plan_; }
  std::mt19937& random() { return random_; }

 private:
  plan::Plan plan_;
  std::mt19937 random_;
  std::unique_ptr<Backend> host_, cuda_;
};

/// Bounds on |got - want| / |want| for ops whose sums differ only in order. bf16 results are rounded to 8
/// bits once, so two sums that differ in the last bit of f32 now and then differ by one step of 2^-8.
inline double tolerance_of(DType dtype) {
  return dtype == DType::f32 ? 2e-5 : 4e-3;
}

}  // namespace capstan::runtime::testing
