#include "compiler/plan/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/model_specs.h"
#include "tests/support/tiny_plan.h"

namespace capstan::plan {
namespace {

using testing::HasSubstr;

constexpr VerifyScope kEverything{.segmented = true, .placed = true};

Plan sound_plan(const ModelSpec& spec) {
  Plan plan = lower(spec);
  const PassResult result = run_passes(plan, spec);
  EXPECT_TRUE(result.ok()) << result.fault;
  return plan;
}

Op& first_op(Plan& plan, OpKind kind, Phase phase = Phase::forward) {
  return *std::find_if(plan.ops.begin(), plan.ops.end(),
                       [&](const Op& op) { return op.kind == kind && op.phase == phase; });
}

BufferId id_of(const Plan& plan, const std::string& name) {
  return plan.buffer(name).id;
}

TEST(Verify, AcceptsTheHandMadePlan) {
  EXPECT_EQ(verify(make_tiny_plan(), kEverything), "");
}

TEST(Verify, FindsReadBeforeWrite) {
  Plan plan = sound_plan(small_llama());
  Op& norm = first_op(plan, OpKind::rms_norm);
  norm.inputs[0] = id_of(plan, "layer.1.attn.out");
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("reads `layer.1.attn.out` before it is written"));
}

TEST(Verify, FindsWrongShapeAndDtype) {
  Plan plan = sound_plan(small_llama());
  plan.buffers[id_of(plan, "layer.0.attn.proj.weight")].shape = {15, 16};
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("another shape"));
  plan = sound_plan(small_llama());
  plan.buffers[id_of(plan, "layer.0.attn.qkv.weight")].dtype = DType::bf16;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("has dtype bf16"));
}

TEST(Verify, FindsMissingAndMistypedAttributes) {
  Plan plan = sound_plan(small_llama());
  first_op(plan, OpKind::rms_norm).attributes.clear();
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("attributes"));
  plan = sound_plan(small_llama());
  first_op(plan, OpKind::rms_norm).attributes[0].second = std::int64_t{1};
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("`eps`"));
}

TEST(Verify, FindsOverlap) {
  Plan plan = sound_plan(small_llama());
  // The saved input of the first norm lives until the last backward op of the layer.
  Buffer& saved = plan.buffers[id_of(plan, "layer.0.attn.out")];
  saved.offset = plan.buffer("layer.0.attn.core").offset;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("overlap"));
  plan = sound_plan(small_llama());
  plan.buffers[id_of(plan, "layer.1.mlp.fc1.weight")].offset = 0;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("overlap"));
}

TEST(Verify, FindsInPlaceWhereTheOpDoesNotAllowIt) {
  Plan plan = sound_plan(small_llama());
  // swiglu reads two columns for each that it writes.
  Buffer& output = plan.buffers[id_of(plan, "layer.0.mlp.act")];
  output.offset = plan.buffer("layer.0.mlp.fc1").offset;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("overlap"));
}

TEST(Verify, FindsMisalignmentAndTheArenasEnd) {
  Plan plan = sound_plan(small_llama());
  plan.buffers.back().offset += 8;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("not aligned"));
  plan = sound_plan(small_llama());
  plan.memory.arena -= kBufferAlignment;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("outside the arena"));
}

TEST(Verify, FindsSharedRandomOffsets) {
  Plan plan = sound_plan(small_llama());
  std::vector<Op*> drops;
  for (Op& op : plan.ops) {
    if (op.kind == OpKind::dropout_add) drops.push_back(&op);
  }
  ASSERT_GE(drops.size(), 2u);
  drops[1]->attributes = drops[0]->attributes;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("the same random numbers"));
}

TEST(Verify, FindsBackwardDropoutWithoutItsForward) {
  Plan plan = sound_plan(small_llama());
  for (auto& [name, value] : first_op(plan, OpKind::attention_backward, Phase::backward).attributes) {
    if (name == "rng_offset") value = std::int64_t{777};
  }
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("no forward op of its layer drew"));
}

TEST(Verify, FindsRecomputeOfOverwrittenInput) {
  ModelSpec spec = small_llama();
  spec.recompute.granularity = RecomputeSpec::Granularity::full;
  Plan plan = sound_plan(spec);
  // The kept input of layer 1 is overwritten between its forward and its recomputation.
  Op spoiler = first_op(plan, OpKind::dropout_backward, Phase::backward);
  spoiler.outputs = {id_of(plan, "layer.0.mlp.out")};
  const auto first_again = std::find_if(plan.ops.begin(), plan.ops.end(),
                                        [](const Op& op) { return op.phase == Phase::recompute; });
  plan.ops.insert(first_again, spoiler);
  for (OpId id = 0; id < plan.ops.size(); ++id) plan.ops[id].id = id;
  EXPECT_THAT(verify(plan, {}), HasSubstr("no longer holds what its original read"));
}

TEST(Verify, FindsBrokenSegments) {
  Plan plan = sound_plan(with_scopes(small_llama(), {"attn"}));
  ASSERT_GT(plan.segments.size(), 4u);
  plan.segments[2].end_op -= 1;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("does not continue"));
  plan = sound_plan(with_scopes(small_llama(), {"attn"}));
  plan.segments.pop_back();
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("end before the ops do"));
  plan = sound_plan(small_llama());
  plan.segments[0].end_op = plan.segments[1].end_op;
  plan.segments.erase(plan.segments.begin() + 1);
  plan.segments[1].id = 1;
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("spans stages"));
  plan = sound_plan(with_scopes(small_llama(), {"attn"}));
  for (Segment& segment : plan.segments) segment.reason.clear();
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("without scope or reason"));
}

TEST(Verify, FindsAnExtentThatOverflows) {
  Plan plan = sound_plan(small_llama());
  plan.buffers[3].shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("out of range"));
}

TEST(Verify, FindsAMissingInterfaceBuffer) {
  Plan plan = sound_plan(small_llama());
  plan.buffers[id_of(plan, names::kGradNorm)].name = "norm";
  EXPECT_THAT(verify(plan, kEverything), HasSubstr("lacks the buffer `grad_norm`"));
}

}  // namespace
}  // namespace capstan::plan
