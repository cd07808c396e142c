#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/plan/lower/lower.h"
#include "compiler/plan/passes.h"
#include "tests/support/model_specs.h"

namespace capstan::plan {
namespace {

Plan with_workspaces(const ModelSpec& spec) {
  Plan plan = lower(spec);
  const PassResult result = run_passes(plan, spec);
  EXPECT_TRUE(result.ok()) << result.fault;
  return plan;
}

ModelSpec for_cuda() {
  ModelSpec spec = small_gpt();
  spec.backend = "cuda";
  spec.dims.heads = 4;
  spec.dims.kv_heads = 2;
  spec.dims.seq_length = 130;  // no whole number of tiles
  return spec;
}

const Buffer* library_workspace(const Plan& plan, OpKind kind) {
  for (const Op& op : plan.ops) {
    if (op.kind == kind && plan.buffers[op.outputs.back()].dtype == DType::u8)
      return &plan.buffers[op.outputs.back()];
  }
  return nullptr;
}

TEST(PassLibraryWorkspaces, EveryProductHasOneAndTheyShareTheirPlace) {
  const Plan plan = with_workspaces(for_cuda());
  std::uint64_t lowest = UINT64_MAX, highest = 0;
  for (const Op& op : plan.ops) {
    const bool product = std::string(op_kind_name(op.kind)).rfind("gemm", 0) == 0;
    if (!product) continue;
    const Buffer& workspace = plan.buffers[op.outputs.back()];
    ASSERT_EQ(workspace.role, Role::workspace);
    EXPECT_EQ(workspace.bytes(), std::uint64_t{64} << 20);
    lowest = std::min(lowest, workspace.offset);
    highest = std::max(highest, workspace.offset + workspace.bytes());
  }
  EXPECT_LT(highest - lowest, std::uint64_t{70} << 20);
  EXPECT_LT(plan.memory.arena, std::uint64_t{80} << 20);
}

// What cuDNN asked for on one H200: batch * heads * rows^2 bf16 values, rows in tiles of 128, for grouped
// queries gradients of keys and values by query head besides.
TEST(PassLibraryWorkspaces, AttentionBackwardHasWhatTheLibraryAsksFor) {
  const ModelSpec spec = for_cuda();
  const Plan plan = with_workspaces(spec);
  const Buffer* workspace = library_workspace(plan, OpKind::attention_backward);
  ASSERT_NE(workspace, nullptr);
  const std::uint64_t batch = static_cast<std::uint64_t>(spec.dims.micro_batch);
  EXPECT_EQ(workspace->bytes(), batch * 4 * 256 * 256 * 2 + 2 * batch * 4 * 256 * 4 * 2 + 256);
  ModelSpec dropped = spec;
  dropped.attention_dropout = 0.1;  // own kernels
  EXPECT_EQ(library_workspace(with_workspaces(dropped), OpKind::attention_backward), nullptr);
  ModelSpec wide = spec;
  wide.param_dtype = DType::f32;
  wide.has_masters = false;
  EXPECT_EQ(library_workspace(with_workspaces(wide), OpKind::attention_backward), nullptr);
}

TEST(PassLibraryWorkspaces, OtherBackendsHaveNone) {
  ModelSpec spec = for_cuda();
  spec.backend = "host";
  for (const Buffer& buffer : with_workspaces(spec).buffers)
    EXPECT_NE(buffer.dtype, DType::u8) << buffer.name;
}

}  // namespace
}  // namespace capstan::plan
