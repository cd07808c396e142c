#include "compiler/plan/passes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "compiler/plan/lifetimes.h"
#include "compiler/plan/lower/lower.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Plan compiled(const ModelSpec& spec) {
  Plan plan = lower(spec);
  const PassResult result = run_passes(plan, spec);
  EXPECT_EQ(result.fault, "");
  EXPECT_TRUE(result.refusals.empty());
  return plan;
}

std::vector<std::string> recomputed(const Plan& plan, std::int32_t layer) {
  std::vector<std::string> kinds;
  for (const Op& op : plan.ops) {
    if (op.phase == Phase::recompute && op.layer == layer)
      kinds.push_back(op.module + ":" + op_kind_name(op.kind));
  }
  return kinds;
}

ModelSpec selective(std::vector<std::string> modules) {
  ModelSpec spec = small_llama();
  spec.recompute.granularity = RecomputeSpec::Granularity::selective;
  spec.recompute.modules = std::move(modules);
  return spec;
}

ModelSpec full(RecomputeSpec::Method method, std::int64_t layers) {
  ModelSpec spec = small_llama();
  spec.dims.layers = 4;
  spec.recompute.granularity = RecomputeSpec::Granularity::full;
  spec.recompute.method = method;
  spec.recompute.num_layers = layers;
  return spec;
}

TEST(PassRecompute, SelectiveModules) {
  EXPECT_THAT(recomputed(compiled(selective({"core_attn"})), 0), ElementsAre("attn:attention"));
  EXPECT_THAT(recomputed(compiled(selective({"layernorm"})), 0),
              ElementsAre("mlp:rms_norm", "attn:rms_norm"));
  // The last matrix product of the MLP is not needed again.
  EXPECT_THAT(recomputed(compiled(selective({"mlp"})), 0), ElementsAre("mlp:gemm", "mlp:swiglu"));
  EXPECT_THAT(recomputed(compiled(selective({"mlp", "layernorm"})), 1),
              ElementsAre("mlp:rms_norm", "mlp:gemm", "mlp:swiglu", "attn:rms_norm"));
}

TEST(PassRecompute, FullUniformRunsALayerAgainBeforeItsBackward) {
  const Plan plan = compiled(full(RecomputeSpec::Method::uniform, 1));
  for (std::int32_t layer = 0; layer < 4; ++layer) {
    EXPECT_THAT(recomputed(plan, layer),
                ElementsAre("attn:rms_norm", "attn:gemm", "attn:rope", "attn:attention", "attn:gemm",
                            "attn:dropout_add", "mlp:rms_norm", "mlp:gemm", "mlp:swiglu"))
        << layer;
  }
  // What a layer leaves for its backward is its input only.
  const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
  const Op& first_backward = *std::find_if(plan.ops.begin(), plan.ops.end(),
                                           [](const Op& op) { return op.phase == Phase::backward; });
  std::set<std::string> alive;
  for (const Buffer& buffer : plan.buffers) {
    const Lifetime& life = lifetimes[buffer.id];
    if (buffer.role == Role::activation && life.first < first_backward.id && life.last > first_backward.id)
      alive.insert(buffer.name);
  }
  EXPECT_THAT(alive, ElementsAre("embedding.dropped", "final_norm.out", "final_norm.rstd", "layer.0.mlp.out",
                                 "layer.1.mlp.out", "layer.2.mlp.out", "layer.3.mlp.out", "tokens"));
}

TEST(PassRecompute, UniformUnitsOfSeveralLayersKeepOnlyTheUnitsInput) {
  const Plan plan = compiled(full(RecomputeSpec::Method::uniform, 2));
  EXPECT_NE(plan.find_buffer("layer.0.mlp.out.again"), nullptr);
  EXPECT_EQ(plan.find_buffer("layer.1.mlp.out.again"), nullptr);
  EXPECT_EQ(recomputed(plan, 0).back(), "mlp:dropout_add");
}

TEST(PassRecompute, BlockRecomputesTheFirstLayersOnly) {
  const Plan plan = compiled(full(RecomputeSpec::Method::block, 3));
  EXPECT_FALSE(recomputed(plan, 2).empty());
  EXPECT_TRUE(recomputed(plan, 3).empty());
}

TEST(PassRecompute, SavesMemoryInTheOrderOfTheMethods) {
  ModelSpec spec = full(RecomputeSpec::Method::uniform, 1);
  spec.dims = {8, 64, 4, 4, 16, 256, 256, 256, 64, 4, 1};
  spec.rotary_dim = 16;
  const std::uint64_t with_full = compiled(spec).memory.activations_peak;
  spec.recompute = selective({"mlp", "layernorm", "core_attn"}).recompute;
  const std::uint64_t with_selective = compiled(spec).memory.activations_peak;
  spec.recompute = {};
  const std::uint64_t without = compiled(spec).memory.activations_peak;
  EXPECT_LT(with_full, with_selective);
  EXPECT_LT(with_selective, without);
}

std::vector<std::string> segments_of(const Plan& plan) {
  std::vector<std::string> texts;
  for (const Segment& s : plan.segments) {
    std::string text = std::string(segment_mode_name(s.mode)) + ":" + s.scope;
    if (s.layer >= 0) text += ":" + std::to_string(s.layer);
    text += s.mode == SegmentMode::graph ? std::string(":") + phase_name(s.phase) : "";
    texts.push_back(text);
  }
  return texts;
}

TEST(PassPartitionSegments, WithoutGraphsOneEagerSegmentAStage) {
  EXPECT_THAT(segments_of(compiled(small_llama())), ElementsAre("eager:", "eager:", "eager:"));
}

TEST(PassPartitionSegments, AttentionOnly) {
  EXPECT_THAT(
      segments_of(compiled(with_scopes(small_llama(), {"attn"}))),
      ElementsAre("eager:", "eager:", "graph:attn:0:forward", "eager:", "graph:attn:1:forward",
                  "eager:", "graph:attn:1:backward", "eager:", "graph:attn:0:backward", "eager:", "eager:"));
}

TEST(PassPartitionSegments, WholeLayers) {
  for (const std::vector<std::string>& modules : {std::vector<std::string>{}, {"attn", "mlp"}}) {
    EXPECT_THAT(segments_of(compiled(with_scopes(small_llama(), modules))),
                ElementsAre("eager:", "eager:", "graph:layer:0:forward", "graph:layer:1:forward", "eager:",
                            "graph:layer:1:backward", "graph:layer:0:backward", "eager:", "eager:"));
  }
}

TEST(PassPartitionSegments, FullIterationWithAndWithoutOptimizer) {
  const Plan without = compiled(with_full_iteration(small_llama(), false));
  EXPECT_THAT(segments_of(without), ElementsAre("graph:full_iteration:forward", "eager:"));
  EXPECT_TRUE(without.segments[0].whole_iteration);
  EXPECT_EQ(without.ops[without.segments[1].first_op].stage, Stage::step_end);
  const Plan with = compiled(with_full_iteration(small_llama(), true));
  EXPECT_THAT(segments_of(with), ElementsAre("graph:full_iteration:forward"));
}

TEST(PassPartitionSegments, OptimizerAloneIsAGraphOfItsOwn) {
  ModelSpec spec = with_scopes(small_llama(), {"mlp"});
  spec.capture.optimizer = true;
  spec.capture.optimizer_key = "optimizer.optimizer_cuda_graph";
  EXPECT_EQ(segments_of(compiled(spec)).back(), "graph:optimizer:optimizer");
}

TEST(PassPartitionSegments, RecomputedOpsStandInTheCapturedBackward) {
  ModelSpec spec = with_scopes(selective({"core_attn"}), {"attn"});
  const Plan plan = compiled(spec);
  for (const Segment& segment : plan.segments) {
    for (OpId id = segment.first_op; id < segment.end_op; ++id) {
      if (plan.ops[id].phase == Phase::recompute) {
        EXPECT_EQ(segment.mode, SegmentMode::graph);
      }
    }
  }
}

PassResult refused(const ModelSpec& spec) {
  Plan plan = lower(spec);
  return run_passes(plan, spec);
}

TEST(PassPartitionSegments, RefusesWhatItCannotCapture) {
  PassResult result = refused(with_scopes(small_llama(), {"attn", "moe_router"}));
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].key, "model.cuda_graph_scope");
  EXPECT_THAT(result.refusals[0].message, HasSubstr("`moe_router`"));

  ModelSpec spec = with_scopes(full(RecomputeSpec::Method::uniform, 1), {"attn"});
  result = refused(spec);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].key, "model.recompute_granularity");

  spec = with_full_iteration(small_llama(), false);
  spec.capture.rng_tracker = false;
  result = refused(spec);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].key, "model.use_te_rng_tracker");
  EXPECT_THAT(result.refusals[0].message, HasSubstr("`dropout` of embedding"));
  // Without dropout nothing random is captured.
  spec.hidden_dropout = spec.attention_dropout = 0;
  EXPECT_TRUE(refused(spec).ok());
}

TEST(PassPartitionSegments, RefusesAGraphOfMillionsOfOps) {
  ModelSpec spec = with_full_iteration(small_llama(), false);
  spec.dims.micro_batches = 1000;
  EXPECT_TRUE(refused(spec).ok());
  spec.dims.micro_batches = kMostBatch;
  PassResult result = refused(spec);
  ASSERT_EQ(result.refusals.size(), 1u);
  EXPECT_EQ(result.refusals[0].key, "model.cuda_graph_impl");
  EXPECT_THAT(result.refusals[0].message, HasSubstr("1048576 micro-batches of"));
  // Segments are listed for each micro-batch, too; where all of it is eager, they are three.
  spec = with_scopes(small_llama(), {"attn"});
  spec.dims.micro_batches = kMostBatch;
  spec.dims.layers = 8;
  ASSERT_EQ(refused(spec).refusals.size(), 1u);
  spec.capture = {};
  EXPECT_TRUE(refused(spec).ok());
}

TEST(PassPartitionSegments, FallsBackToEagerOnlyWhenAsked) {
  ModelSpec spec = with_scopes(small_llama(), {"moe"});
  spec.capture.fall_back_to_eager = true;
  const Plan plan = compiled(spec);
  EXPECT_THAT(segments_of(plan), ElementsAre("eager:", "eager:", "eager:"));
  EXPECT_THAT(plan.segments[1].reason,
              HasSubstr("not captured: no op of the model belongs to the capture scope `moe`"));
}

TEST(PassPlaceBuffers, ResultsTakeThePlaceOfDyingInputs) {
  const Plan plan = compiled(small_llama());
  EXPECT_EQ(plan.buffer("logits").offset, plan.buffer("logits.grad").offset);
  EXPECT_EQ(plan.buffer("layer.0.attn.proj").offset, plan.buffer("layer.0.attn.out").offset);
}

TEST(PassPlaceBuffers, PeakIsNearTheLowerBound) {
  // No placement can need less than the largest sum of buffers that live at one op (in-place pairs counted
  // once).
  for (ModelSpec spec : {small_llama(), small_gpt(), selective({"core_attn", "mlp"}),
                         full(RecomputeSpec::Method::uniform, 2)}) {
    spec.dims = {6, 64, 4, 2, 16, 172, 500, 512, 64, 2, 1};
    spec.rotary_dim = 16;
    const Plan plan = compiled(spec);
    const std::vector<Lifetime> lifetimes = find_lifetimes(plan);
    std::uint64_t bound = 0;
    for (OpId at = 0; at < plan.ops.size(); ++at) {
      std::uint64_t live = 0;
      std::set<std::uint64_t> starts;
      for (const Buffer& buffer : plan.buffers) {
        if (is_persistent(buffer.role) || lifetimes[buffer.id].first > at || lifetimes[buffer.id].last < at)
          continue;
        if (starts.insert(buffer.offset).second) live += (buffer.bytes() + 255) / 256 * 256;
      }
      bound = std::max(bound, live);
    }
    EXPECT_GE(plan.memory.activations_peak, bound);
    EXPECT_LE(static_cast<double>(plan.memory.activations_peak), 1.05 * static_cast<double>(bound))
        << spec.config_name;
  }
}

TEST(PassPlaceBuffers, SummaryAddsUp) {
  for (const ModelSpec& spec : {small_llama(), small_gpt()}) {
    const MemorySummary m = compiled(spec).memory;
    EXPECT_EQ(m.arena, m.parameters + m.masters + m.gradients + m.optimizer + m.inputs_and_scalars +
                           m.activations_peak);
    EXPECT_GT(m.workspaces_peak, 0u);
    EXPECT_EQ(m.masters > 0, spec.has_masters);
  }
}

TEST(Passes, StopAfterTheNamedOne) {
  const ModelSpec spec = small_llama();
  Plan plan = lower(spec);
  EXPECT_TRUE(run_passes(plan, spec, "partition_segments").ok());
  EXPECT_FALSE(plan.segments.empty());
  EXPECT_EQ(plan.memory.arena, 0u);
}

TEST(Passes, AFaultNamesThePass) {
  const ModelSpec spec = small_llama();
  Plan plan = lower(spec);
  plan.ops[5].inputs.clear();
  EXPECT_THAT(run_passes(plan, spec).fault, HasSubstr("after lowering: op 5"));
}

}  // namespace
}  // namespace capstan::plan
