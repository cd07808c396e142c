#include "compiler/facts/derive.h"

#include <gtest/gtest.h>

#include "compiler/facts/stack_choice.h"
#include "tests/unit/config/config_from_text.h"

namespace capstan {
namespace {

using test::compose_text;
using test::Composed;

/// One fact of a config on the stack that it states. The text form: "unknown", or the value, with "!" when a
/// layer set it.
std::string fact_of(const std::string& text, const std::string& name) {
  Composed result;
  compose_text(result, text);
  const auto choice = choose_stack(*result.config, builtin_schema(), {}, result.sink);
  EXPECT_TRUE(choice) << result.messages();
  const SchemaView view(builtin_schema(), choice->stack);
  bind(*result.config, view, result.sink);
  FactNames names;
  const FactId id = names.intern(name);
  const Facts facts = derive_facts(*result.config, view, names);
  const Fact& fact = facts.values[id];
  if (fact.state == Fact::State::unknown) return "unknown";
  return (fact.is_version ? "v" + to_text(fact.version) : to_text(fact.value)) + (fact.set ? "!" : "");
}

constexpr const char* kTarget = "[target]\nstack = \"bridge-0.4\"\n";

TEST(DeriveFacts, AValueOrTheDefaultOfTheRelease) {
  EXPECT_EQ(fact_of(std::string(kTarget) + "[model]\nnum_layers = 4\n", "model.num_layers"), "4!");
  EXPECT_EQ(fact_of(kTarget, "model.tensor_model_parallel_size"), "1");
  EXPECT_EQ(fact_of(kTarget, "model.recompute_granularity"), "none");
  EXPECT_EQ(fact_of(kTarget, "model.cuda_graph_modules"), "none");  // not in that release
}

TEST(DeriveFacts, BrokenAndOpenKeysAreUnknown) {
  EXPECT_EQ(fact_of(std::string(kTarget) + "[model]\nnum_layers = \"x\"\n", "model.num_layers"), "unknown");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[model]\nnum_layers = \"?\"\n", "model.num_layers"), "unknown");
}

TEST(DeriveFacts, FunctionsAreTheirOwnName) {
  EXPECT_EQ(fact_of(std::string(kTarget) + "[model]\nnum_layers = 4\n", "model.activation_func"), "\"gelu\"");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[model]\nactivation_func = \"torch.nn.functional.silu\"\n",
                    "model.activation_func"),
            "\"silu\"!");
}

TEST(DeriveFacts, EnvironmentVariablesAreNoneWhenAbsent) {
  EXPECT_EQ(fact_of(kTarget, "env.NCCL_ALGO"), "none");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[env]\nNCCL_ALGO = \"Ring\"\n", "env.NCCL_ALGO"), "\"Ring\"!");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[env]\nNEVER_HEARD_OF = 1\n", "env.NEVER_HEARD_OF"), "\"1\"!");
}

TEST(DeriveFacts, TheTarget) {
  EXPECT_EQ(fact_of(kTarget, "target.megatron-core"), "v0.17.1");
  EXPECT_EQ(fact_of(kTarget, "target.transformer-engine"), "unknown");
  EXPECT_EQ(fact_of(kTarget, "target.compute_capability"), "unknown");
  EXPECT_EQ(fact_of(std::string(kTarget) + "gpu = \"GB200\"\n", "target.compute_capability"), "100!");
  EXPECT_EQ(fact_of(std::string(kTarget) + "gpu = \"GB200\"\ncompute_capability = \"9.0\"\n",
                    "target.compute_capability"),
            "90!");
  EXPECT_EQ(fact_of(std::string(kTarget) + "gpu = \"H100\"\n", "target.gpu"), "\"h100\"!");
  EXPECT_EQ(fact_of("[target]\nfrontend = \"megatron-bridge\"\n", "target.frontend"), "\"bridge\"!");
}

TEST(DeriveFacts, TheWorldSize) {
  EXPECT_EQ(fact_of(kTarget, "cluster.world_size"), "unknown");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[cluster]\nnodes = 4\ngpus_per_node = 8\n", "cluster.world_size"),
            "32!");
  EXPECT_EQ(fact_of(std::string(kTarget) + "num_gpus = 16\n", "cluster.world_size"), "16!");
  EXPECT_EQ(
      fact_of(std::string(kTarget) + "num_gpus = 16\n[cluster]\nworld_size = 8\n", "cluster.world_size"),
      "8!");
  EXPECT_EQ(fact_of(std::string(kTarget) + "[cluster]\nnodes = 4611686018427387904\ngpus_per_node = 8\n",
                    "cluster.world_size"),
            "unknown");
}

TEST(DeriveFacts, WhatRulesDefineIsNoneBeforeTheyDo) {
  EXPECT_EQ(fact_of(kTarget, "graph.modules"), "none");
}

}  // namespace
}  // namespace capstan
