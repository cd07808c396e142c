// The backward pass of whole models, as the compiler lowers them, against central differences of their loss,
// in f64.
#include <gtest/gtest.h>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "runtime/execute/issue_order.h"
#include "tests/support/model_specs.h"
#include "tests/unit/runtime/op_harness.h"

namespace capstan::runtime::testing {
namespace {

plan::ModelSpec in_f64(plan::ModelSpec spec) {
  spec.param_dtype = DType::f64;
  spec.grad_dtype = DType::f64;
  spec.has_masters = false;
  // Larger weights than training starts from: every path then has a slope that differences can see.
  spec.init_std = spec.output_init_std = spec.embedding_init_std = 0.3;
  return spec;
}

class ModelGradient {
 public:
  explicit ModelGradient(const plan::ModelSpec& spec) : plan_(make(spec)), harness_(plan_) {
    const plan::Buffer& batch = plan_.buffer(plan::names::kBatchTokens);
    Numbers tokens;
    for (std::int64_t i = 0; i < batch.elements(); ++i)
      tokens.push_back(static_cast<double>(i * i * 7 % plan_.dims.vocab));
    harness_.set(batch.id, tokens);
  }

  /// Loss of one step without its optimizer; the gradients are then in their buffers.
  double loss() {
    for (const char* counter :
         {plan::names::kStep, plan::names::kMicroBatchIndex, plan::names::kRngCounter}) {
      harness_.set(plan_.buffer(counter).id, {0});
    }
    for (const SegmentIssue& issue : step_order(plan_)) {
      for (const OpIssue& each : segment_order(plan_, plan_.segments[issue.segment])) {
        if (plan_.ops[each.op].stage != plan::Stage::step_end) harness_.run(each.op);
      }
    }
    return harness_.get(plan_.buffer(plan::names::kLoss).id)[0];
  }

  void check() {
    loss();
    std::vector<std::pair<const plan::Buffer*, Numbers>> gradients;
    for (const plan::Buffer& buffer : plan_.buffers) {
      if (buffer.role != plan::Role::parameter) continue;
      gradients.emplace_back(&buffer, harness_.get(plan_.buffer(buffer.name + ".grad").id));
    }
    ASSERT_FALSE(gradients.empty());
    constexpr double kStep = 1e-5;
    double largest = 0;
    for (const auto& [parameter, gradient] : gradients) {
      const Numbers value = harness_.get(parameter->id);
      // Some of the elements of each parameter: first, last, and a stride between.
      const std::size_t stride = std::max<std::size_t>(1, value.size() / 5);
      for (std::size_t e = 0; e < value.size(); e += stride) {
        const auto at = [&, id = parameter->id](double shift) {
          Numbers moved = value;
          moved[e] += shift;
          harness_.set(id, moved);
          return loss();
        };
        const double slope = (at(kStep) - at(-kStep)) / (2 * kStep);
        harness_.set(parameter->id, value);
        ASSERT_NEAR(gradient[e], slope, 1e-8 + 1e-6 * std::fabs(slope)) << parameter->name << "[" << e << "]";
        largest = std::max(largest, std::fabs(slope));
      }
    }
    EXPECT_GT(largest, 1e-3);  // the differences saw something
  }

 private:
  static plan::Plan make(const plan::ModelSpec& spec) {
    plan::Plan plan = plan::lower(spec);
    const plan::PassResult passed = plan::run_passes(plan, spec);
    EXPECT_TRUE(passed.ok()) << passed.fault;
    return plan;
  }

  plan::Plan plan_;
  OpHarness harness_;
};

TEST(ModelGradient, LlamaShapedWithDropoutAndTwoMicroBatches) {
  const plan::ModelSpec spec = in_f64(plan::small_llama());
  ASSERT_EQ(spec.dims.layers, 2);
  ASSERT_EQ(spec.dims.micro_batches, 2);
  ModelGradient(spec).check();
}

TEST(ModelGradient, GptShapedWithBiases) {
  ModelGradient(in_f64(plan::small_gpt())).check();
}

TEST(ModelGradient, GptShapedWithTiedHeadDropoutAndTanhGelu) {
  plan::ModelSpec spec = in_f64(plan::small_gpt());
  spec.tied_head = true;
  spec.hidden_dropout = spec.attention_dropout = 0.2;
  spec.activation = plan::Activation::gelu_tanh;
  ModelGradient(spec).check();
}

TEST(ModelGradient, WithRecompute) {
  plan::ModelSpec spec = in_f64(plan::small_llama());
  spec.recompute.granularity = plan::RecomputeSpec::Granularity::full;
  spec.recompute.num_layers = 1;
  ModelGradient(spec).check();
}

}  // namespace
}  // namespace capstan::runtime::testing
