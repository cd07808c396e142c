#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/plan/model_flops.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Not;

std::vector<std::string> kinds_of(const Plan& plan, const std::string& module, std::int32_t layer,
                                  Phase phase) {
  std::vector<std::string> kinds;
  for (const Op& op : plan.ops) {
    if (op.module == module && op.layer == layer && op.phase == phase) kinds.push_back(op_kind_name(op.kind));
  }
  return kinds;
}

std::size_t count(const Plan& plan, OpKind kind) {
  return static_cast<std::size_t>(
      std::count_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.kind == kind; }));
}

const Op& only(const Plan& plan, OpKind kind) {
  EXPECT_EQ(count(plan, kind), 1u) << op_kind_name(kind);
  return *std::find_if(plan.ops.begin(), plan.ops.end(), [&](const Op& op) { return op.kind == kind; });
}

TEST(Lower, AttentionBlockOfARotatedModel) {
  const Plan plan = lower(small_llama());
  EXPECT_THAT(kinds_of(plan, "attn", 0, Phase::forward),
              ElementsAre("rms_norm", "gemm", "rope", "attention", "gemm", "dropout_add"));
  // Output to input: dropout, projection (weight, data), attention, rotation back, qkv (weight, data), norm.
  EXPECT_THAT(kinds_of(plan, "attn", 0, Phase::backward),
              ElementsAre("dropout_backward", "gemm", "gemm", "attention_backward", "rope", "gemm", "gemm",
                          "rms_norm_backward"));
}

TEST(Lower, MlpBlockWithBiases) {
  const Plan plan = lower(small_gpt());
  EXPECT_THAT(kinds_of(plan, "mlp", 1, Phase::forward),
              ElementsAre("layer_norm", "gemm", "gelu", "gemm", "add"));
  EXPECT_THAT(kinds_of(plan, "mlp", 1, Phase::backward),
              ElementsAre("bias_backward", "gemm", "gemm", "gelu_backward", "bias_backward", "gemm", "gemm",
                          "layer_norm_backward"));
}

TEST(Lower, LayersRunForwardInOrderAndBackwardInReverse) {
  const Plan plan = lower(small_llama());
  std::vector<std::int32_t> forward, backward;
  for (const Op& op : plan.ops) {
    if (op.kind == OpKind::attention) forward.push_back(op.layer);
    if (op.kind == OpKind::attention_backward) backward.push_back(op.layer);
  }
  EXPECT_THAT(forward, ElementsAre(0, 1));
  EXPECT_THAT(backward, ElementsAre(1, 0));
}

TEST(Lower, EveryParameterHasGradientMomentsAndOneUpdate) {
  for (const ModelSpec& spec : {small_llama(), small_gpt()}) {
    const Plan plan = lower(spec);
    std::map<BufferId, int> updates;
    for (const Op& op : plan.ops) {
      if (op.kind != OpKind::adamw) continue;
      for (const BufferId id : op.outputs) ++updates[id];
    }
    std::set<BufferId> cleared(plan.ops[0].outputs.begin(), plan.ops[0].outputs.end());
    const Op& norm = only(plan, OpKind::grad_norm);
    const std::set<BufferId> normed(norm.inputs.begin(), norm.inputs.end());
    std::size_t parameters = 0;
    for (const Buffer& buffer : plan.buffers) {
      if (buffer.role != Role::parameter) continue;
      ++parameters;
      EXPECT_EQ(updates[buffer.id], 1) << buffer.name;
      EXPECT_EQ(updates[plan.buffer(buffer.name + ".moment1").id], 1);
      EXPECT_EQ(updates[plan.buffer(buffer.name + ".moment2").id], 1);
      const Buffer& gradient = plan.buffer(buffer.name + ".grad");
      EXPECT_EQ(gradient.shape, buffer.shape);
      EXPECT_TRUE(cleared.count(gradient.id)) << gradient.name;
      EXPECT_TRUE(normed.count(gradient.id)) << gradient.name;
      if (spec.has_masters) {
        EXPECT_EQ(updates[plan.buffer(buffer.name + ".master").id], 1);
      }
    }
    // Embedding, final norm, and per layer two norms and four matrices (with biases: twice as many but for
    // the embeddings).
    EXPECT_EQ(parameters, spec.linear_bias ? 2u + 2u + 1u + 2u * (4 + 8) : 2u + 2u * 6);
  }
}

TEST(Lower, WeightDecayLeavesOutBiasesAndNorms) {
  const Plan plan = lower(small_gpt());
  for (const Op& op : plan.ops) {
    if (op.kind != OpKind::adamw) continue;
    for (const BufferId id : op.outputs) {
      const Buffer& buffer = plan.buffers[id];
      if (buffer.role != Role::parameter) continue;
      // Megatron's rule: vectors and biases do not decay.
      EXPECT_EQ(op.floating("weight_decay") > 0, buffer.shape.size() > 1) << buffer.name;
    }
  }
}

TEST(Lower, TiedHeadAccumulatesIntoTheEmbedding) {
  const Plan tied = lower(small_llama());
  EXPECT_EQ(tied.find_buffer("head.weight"), nullptr);
  const BufferId table_gradient = tied.buffer("embedding.word.weight.grad").id;
  std::vector<std::string> writers;
  for (const Op& op : tied.ops) {
    if (op.stage == Stage::micro_batch &&
        std::count(op.outputs.begin(), op.outputs.end(), table_gradient) > 0) {
      writers.push_back(op_kind_name(op.kind));
    }
  }
  EXPECT_THAT(writers, ElementsAre("gemm", "embedding_backward"));
  EXPECT_NE(lower(small_gpt()).find_buffer("head.weight"), nullptr);
}

TEST(Lower, GradientsAccumulateOverMicroBatches) {
  const Plan plan = lower(small_gpt());
  for (const Op& op : plan.ops) {
    if (op.stage != Stage::micro_batch) continue;
    for (const BufferId id : op.outputs) {
      if (plan.buffers[id].role != Role::gradient) continue;
      EXPECT_THAT(op.inputs, Contains(id))
          << op_kind_name(op.kind) << " overwrites " << plan.buffers[id].name;
    }
  }
}

TEST(Lower, LossIsTheMeanOverTheStepsTokens) {
  const Plan plan = lower(small_llama());
  // 8 tokens, 2 sequences, 2 micro-batches.
  EXPECT_DOUBLE_EQ(only(plan, OpKind::accumulate_loss).floating("scale"), 1.0 / 32);
  EXPECT_DOUBLE_EQ(only(plan, OpKind::cross_entropy_backward).floating("scale"), 1.0 / 32);
}

TEST(Lower, WithoutDropoutNothingDraws) {
  ModelSpec spec = small_llama();
  spec.hidden_dropout = 0;
  const Plan plan = lower(spec);
  EXPECT_EQ(
      count(plan, OpKind::dropout) + count(plan, OpKind::dropout_add) + count(plan, OpKind::dropout_backward),
      0u);
  EXPECT_EQ(count(plan, OpKind::add), 4u);
}

TEST(Lower, InitialWeightsFollowMegatron) {
  const Plan plan = lower(small_llama());
  EXPECT_DOUBLE_EQ(plan.buffer("layer.0.attn.qkv.weight").init.stddev, 0.02);
  // Matrices that end a residual branch are scaled by 1/sqrt(2 * layers).
  EXPECT_DOUBLE_EQ(plan.buffer("layer.0.attn.proj.weight").init.stddev, 0.02 / 2);
  EXPECT_DOUBLE_EQ(plan.buffer("layer.1.mlp.fc2.weight").init.stddev, 0.02 / 2);
  EXPECT_EQ(plan.buffer("final_norm.weight").init.kind, Init::Kind::ones);
  std::set<std::uint64_t> streams;
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.init.kind == Init::Kind::normal) {
      EXPECT_TRUE(streams.insert(buffer.init.stream).second) << buffer.name;
    }
  }
}

TEST(Lower, MastersStartAsTheSameDraw) {
  const Plan plan = lower(small_gpt());
  for (const Buffer& buffer : plan.buffers) {
    if (buffer.role != Role::master) continue;
    const Buffer& parameter =
        plan.buffer(buffer.name.substr(0, buffer.name.size() - std::string(".master").size()));
    EXPECT_EQ(buffer.init.stream, parameter.init.stream);
    EXPECT_EQ(buffer.init.kind, parameter.init.kind);
    EXPECT_EQ(buffer.init.stddev, parameter.init.stddev);
    EXPECT_EQ(buffer.dtype, DType::f32);
  }
}

TEST(Lower, Fp8LayersMultiplyQuantisedFactors) {
  ModelSpec spec = small_gpt();
  spec.dims.layers = 4;
  spec.fp8 = ModelSpec::Fp8::hybrid;
  spec.wide_layers_at_start = spec.wide_layers_at_end = 1;
  for (const auto granularity : {RecomputeSpec::Granularity::none, RecomputeSpec::Granularity::selective,
                                 RecomputeSpec::Granularity::full}) {
    spec.recompute.granularity = granularity;
    spec.recompute.modules = {"mlp", "layernorm"};
    Plan plan = lower(spec);
    const PassResult result = run_passes(plan, spec);
    ASSERT_TRUE(result.ok()) << result.fault;
    int products = 0;
    for (const Op& op : plan.ops) {
      const bool inner = op.layer == 1 || op.layer == 2;
      EXPECT_FALSE(inner && op.kind == OpKind::gemm) << op.id;
      EXPECT_FALSE(!inner && op.kind == OpKind::gemm_fp8) << op.id;
      if (op.kind != OpKind::gemm_fp8) continue;
      products += op.phase != Phase::recompute;
      const bool backward = op.phase == Phase::backward;
      // Gradients come first, with the wider range; sums may be kept in fewer bits forwards only.
      EXPECT_EQ(plan.buffers[op.inputs[0]].dtype, backward ? DType::f8e5m2 : DType::f8e4m3);
      EXPECT_EQ(plan.buffers[op.inputs[1]].dtype, DType::f8e4m3);
      EXPECT_EQ(op.boolean("fast_accumulation"), !backward);
    }
    EXPECT_EQ(products, 2 * 4 * 3);  // layers, products of a layer, forward and two backward
  }
}

TEST(Lower, PlansForCudaNeverHoldAllLogits) {
  ModelSpec spec = small_gpt();
  spec.backend = "cuda";
  spec.dims.seq_length = 5000;
  Plan plan = lower(spec);
  ASSERT_TRUE(run_passes(plan, spec).ok());
  int heads = 0;
  for (const Op& op : plan.ops) {
    EXPECT_NE(op.kind, OpKind::cross_entropy);
    if (op.kind != OpKind::linear_cross_entropy) continue;
    ++heads;
    EXPECT_EQ(op.integer("chunk_rows"), 4096);
    EXPECT_EQ(plan.buffers[op.outputs[3]].shape, (std::vector<std::int64_t>{4096, spec.dims.padded_vocab}));
  }
  EXPECT_EQ(heads, 1);
}

TEST(Lower, ModelFlopsMatchTheClosedForm) {
  // S2 of the bench presets: 6 per matrix weight and token, attention 6 * seq * width a token and layer.
  ModelSpec spec = small_gpt();
  spec.dims = {12, 768, 12, 12, 64, 3072, 50304, 50304, 1024, 16, 1};
  const double weights = 12.0 * (4.0 * 768 * 768 + 2.0 * 768 * 3072) + 50304.0 * 768;
  const double expected = 16.0 * 1024 * (6 * weights + 12.0 * 6 * 1024 * 768);
  EXPECT_DOUBLE_EQ(model_flops_per_step(spec), expected);
}

}  // namespace
}  // namespace capstan::plan
