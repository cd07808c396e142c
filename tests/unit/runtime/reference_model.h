// One training step of a small model beside the same step in PyTorch (tests/data/make_reference.py): same
// initial weights, same batch; loss, gradient norm, every gradient, and every weight after clipping and
// AdamW.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/checkpoint/safetensors.h"
#include "runtime/device/backend.h"
#include "runtime/execute/executor.h"
#include "tests/support/model_specs.h"

namespace capstan::runtime::testing {

class ReferenceModel {
 public:
  explicit ReferenceModel(bool gpt) : file_(open(gpt)), plan_(make_plan(gpt)) {}

  const plan::Plan& plan() const { return plan_; }

  /// Runs the step on a prepared backend. The largest |got - want| over |want| of all tensors, as vectors, is
  /// at most `tolerance`.
  void check(Backend& backend, double tolerance, bool captured) const {
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.role != plan::Role::parameter && buffer.name != plan::names::kBatchTokens) continue;
      ASSERT_TRUE(backend.upload(buffer.id, bytes(buffer.name)).ok()) << buffer.name;
    }
    Executor executor(plan_, backend);
    const Status ran = captured ? executor.run_captured() : executor.run_eager();
    ASSERT_TRUE(ran.ok()) << ran.error().message;
    compare(backend, plan::names::kLoss, "loss", tolerance);
    compare(backend, plan::names::kGradNorm, "grad_norm", tolerance);
    int compared = 0;
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.role != plan::Role::parameter) continue;
      compare(backend, buffer.name + ".grad", buffer.name + ".grad", tolerance);
      compare(backend, buffer.name, buffer.name + ".after", tolerance);
      ++compared;
    }
    EXPECT_GE(compared, 14);
    EXPECT_EQ(file_.tensors().size(), 3U * static_cast<std::size_t>(compared) + 3U);
  }

 private:
  static SafetensorsFile open(bool gpt) {
    auto file = SafetensorsFile::open(std::string(CAPSTAN_SOURCE_DIR "/tests/data/reference_") +
                                      (gpt ? "gpt" : "llama") + ".safetensors");
    EXPECT_TRUE(file.ok());
    return std::move(file.value());
  }

  static plan::Plan make_plan(bool gpt) {
    plan::ModelSpec spec = gpt ? plan::small_gpt() : plan::small_llama();
    spec.dims = {2, 16, 4, gpt ? 4 : 2, 8, 24, 40, 48, 12, 3, 2};
    spec.rotary_dim = gpt ? 0 : 8;
    spec.hidden_dropout = spec.attention_dropout = 0;
    spec.param_dtype = spec.grad_dtype = plan::DType::f32;
    spec.has_masters = false;
    spec.norm_eps = 1e-5;
    spec.optimizer.decay_style = "constant";
    spec.optimizer.max_lr = 2e-3;
    spec.optimizer.beta2 = 0.95;
    spec.optimizer.weight_decay = 0.1;
    spec.optimizer.clip_grad = 0.5;
    spec = plan::with_full_iteration(spec, true);
    plan::Plan plan = plan::lower(spec);
    const plan::PassResult passed = plan::run_passes(plan, spec);
    EXPECT_TRUE(passed.ok()) << passed.fault;
    return plan;
  }

  std::span<const std::byte> bytes(const std::string& name) const {
    for (std::size_t i = 0; i < file_.tensors().size(); ++i) {
      if (file_.tensors()[i].name == name) return file_.bytes(i);
    }
    ADD_FAILURE() << "the reference has no " << name;
    return {};
  }

  static std::vector<float> floats(std::span<const std::byte> from) {
    std::vector<float> values(from.size() / sizeof(float));
    std::memcpy(values.data(), from.data(), values.size() * sizeof(float));
    return values;
  }

  void compare(Backend& backend, const std::string& buffer, const std::string& tensor,
               double tolerance) const {
    const std::vector<float> want = floats(bytes(tensor));
    std::vector<std::byte> raw(plan_.buffer(buffer).bytes());
    ASSERT_TRUE(backend.download(plan_.buffer(buffer).id, raw).ok());
    const std::vector<float> got = floats(raw);
    ASSERT_EQ(got.size(), want.size()) << buffer;
    // AdamW's first step has the size of the learning rate whatever the gradient's: where the gradient is
    // zero but for rounding (the biases of keys, which softmax does not see), its direction is chance.
    std::vector<bool> is_chance(got.size(), false);
    if (const std::size_t end = tensor.rfind(".after"); end != std::string::npos) {
      const std::vector<float> gradient = floats(bytes(tensor.substr(0, end) + ".grad"));
      double largest = 0;
      for (const float g : gradient) largest = std::max(largest, std::fabs(static_cast<double>(g)));
      for (std::size_t i = 0; i < gradient.size(); ++i)
        is_chance[i] = std::fabs(static_cast<double>(gradient[i])) < 1e-5 * largest;
    }
    double difference = 0, length = 0;
    std::size_t left_out = 0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      left_out += is_chance[i];
      if (is_chance[i]) continue;
      difference += std::pow(static_cast<double>(got[i]) - want[i], 2);
      length += std::pow(static_cast<double>(want[i]), 2);
    }
    EXPECT_LE(left_out, got.size() / 3) << tensor;
    EXPECT_LE(std::sqrt(difference), tolerance * std::sqrt(length)) << tensor;
    EXPECT_GT(length, 0.0) << tensor;
  }

  SafetensorsFile file_;
  plan::Plan plan_;
};

}  // namespace capstan::runtime::testing
