#include "compiler/facts/stack_choice.h"

#include <gtest/gtest.h>

#include "compiler/facts/gpu.h"
#include "tests/unit/config/config_from_text.h"

namespace capstan {
namespace {

using test::compose_text;
using test::Composed;

struct Chosen {
  std::optional<StackChoice> choice;
  std::string messages;
};

Chosen choose(const std::string& text, const std::string& option = {}) {
  Composed result;
  compose_text(result, text);
  Chosen chosen;
  chosen.choice = choose_stack(*result.config, builtin_schema(), option, result.sink);
  chosen.messages = result.messages();
  return chosen;
}

std::string name_of(const Chosen& chosen) {
  return chosen.choice ? chosen.choice->stack.name : "none";
}

TEST(StackChoice, TheOptionWinsOverTheFile) {
  const Chosen chosen = choose("[target]\nstack = \"bridge-0.3\"\n", "core-0.17");
  EXPECT_EQ(name_of(chosen), "core-0.17");
  EXPECT_FALSE(chosen.choice->assumed);
}

TEST(StackChoice, AComponentOverridesItsStack) {
  const Chosen chosen =
      choose("[target]\nstack = \"bridge-0.4\"\ntransformer-engine = \"2.10\"\nmegatron-core = \"0.17.3\"\n");
  ASSERT_TRUE(chosen.choice) << chosen.messages;
  EXPECT_EQ(*chosen.choice->stack.version_of("transformer-engine"), *parse_version("2.10"));
  EXPECT_EQ(*chosen.choice->stack.version_of("megatron-core"), *parse_version("0.17.3"));
}

TEST(StackChoice, AReleaseLineKeepsThePatchReleaseOfTheStack) {
  const Chosen chosen = choose("[target]\nfrontend = \"core\"\nmegatron-core = \"0.17\"\n");
  ASSERT_TRUE(chosen.choice) << chosen.messages;
  EXPECT_EQ(*chosen.choice->stack.version_of("megatron-core"),
            *builtin_schema().find_stack("core-0.17")->version_of("megatron-core"));
}

TEST(StackChoice, TheMinimumOfTransformerEngineCountsWhenNothingElseIsStated) {
  EXPECT_EQ(*choose("[target]\ntransformer_engine_min = \"2.12.0\"\n")
                 .choice->stack.version_of("transformer-engine"),
            *parse_version("2.12"));
  EXPECT_EQ(*choose("[target]\ntransformer_engine_min = \"2.12.0\"\ntransformer_engine = \"2.13\"\n")
                 .choice->stack.version_of("transformer-engine"),
            *parse_version("2.13"));
}

TEST(StackChoice, FrontEndsHaveOtherNamesToo) {
  EXPECT_EQ(choose("[target]\nfrontend = \"megatron-bridge\"\n").choice->stack.frontend, "bridge");
  EXPECT_EQ(choose("[target]\nfrontend = \"verl\"\n").choice->stack.frontend, "core");
  EXPECT_EQ(choose("[target]\nfrontend = \"megatron-lm\"\n").choice->stack.frontend, "megatron-lm");
}

TEST(StackChoice, InfersFromTheDialect) {
  EXPECT_EQ(name_of(choose("[model]\ncuda_graph_scope = [\"attn\"]\n")), "bridge-0.4");
  EXPECT_EQ(name_of(choose("[model]\ncuda_graph_modules = [\"attn\"]\n")), "bridge-0.6");
  EXPECT_EQ(name_of(choose("[target]\nfrontend = \"megatron-lm\"\n[model]\ncuda_graph_scope = [\"attn\"]\n")),
            "megatron-lm-0.17");
  const Chosen nothing = choose("");
  EXPECT_EQ(name_of(nothing), "bridge-0.6");
  EXPECT_TRUE(nothing.choice->assumed);
}

// A version of the core alone is that of several stacks: which one was taken, and why, is said.
TEST(StackChoice, SaysWhyAComponentLeadsToItsStack) {
  const Chosen several = choose("[target]\nmegatron-core = \"0.17.1\"\n");
  ASSERT_TRUE(several.choice);
  EXPECT_TRUE(several.choice->assumed);
  EXPECT_EQ(
      stack_words(*several.choice),
      "bridge-0.4 (assumed: megatron-core 0.17.1 is that of bridge-0.4, megatron-lm-0.17, core-0.17; no key "
      "speaks for another one than the first)");
  const Chosen by_key =
      choose("[target]\nmegatron-core = \"0.17\"\n[arguments]\nadd_position_embedding = true\n");
  ASSERT_TRUE(by_key.choice);
  EXPECT_EQ(
      stack_words(*by_key.choice),
      "megatron-lm-0.17 (assumed: megatron-core 0.17 is that of bridge-0.4, megatron-lm-0.17, core-0.17; "
      "`arguments.add_position_embedding` speaks for it, not for bridge-0.4)");
  const Chosen one = choose("[target]\nmegatron-bridge = \"0.4\"\n");
  ASSERT_TRUE(one.choice);
  EXPECT_FALSE(one.choice->assumed);
  EXPECT_EQ(stack_words(*one.choice), "bridge-0.4 (megatron-bridge 0.4 is its release)");
  EXPECT_EQ(stack_words(*choose("[target]\nstack = \"bridge-0.4\"\n").choice), "bridge-0.4");
}

TEST(StackChoice, RefusesWhatNoStackHas) {
  EXPECT_EQ(choose("[target]\nmegatron-core = \"0.99\"\n").messages,
            "TG001 no known stack has megatron-core 0.99.0\n");
  EXPECT_EQ(choose("[target]\nstack = \"bridge-0.4\"\nmegatron-core = \"0.99\"\n").messages,
            "TG001 no known stack has megatron-core 0.99.0\n");
  EXPECT_EQ(choose("[target]\nstack = 4\n").messages, "TG001 `target.stack` must be the name of a stack\n");
  EXPECT_EQ(choose("[target]\nfrontend = \"nemo\"\n").messages, "TG001 no front-end is named \"nemo\"\n");
  EXPECT_FALSE(choose("[target]\ntorch = \"new\"\n").choice);
}

TEST(Gpu, HasACapability) {
  // NVIDIA's table of CUDA GPUs.
  EXPECT_EQ(compute_capability_of("H100"), 90);
  EXPECT_EQ(compute_capability_of("NVIDIA A100-SXM4-80GB"), 80);
  EXPECT_EQ(compute_capability_of("gb300"), 103);
  EXPECT_EQ(compute_capability_of("l40s"), 89);
  EXPECT_EQ(compute_capability_of("my gpu"), std::nullopt);
  EXPECT_EQ(gpu_model("NVIDIA H100 80GB HBM3"), "h100");
  EXPECT_EQ(gpu_model("Custom X"), "custom x");
}

TEST(Gpu, CapabilitiesComeInSeveralSpellings) {
  for (const Value& value : {Value("9.0"), Value("90"), Value("sm_90"), Value("sm_90a"), Value("9"),
                             Value(9.0), Value(9), Value(90)}) {
    EXPECT_EQ(read_compute_capability(value), 90) << to_text(value);
  }
  EXPECT_EQ(read_compute_capability(Value("10.3")), 103);
  EXPECT_EQ(read_compute_capability(Value(12.1)), 121);
  for (const Value& value : {Value(""), Value("x"), Value("9.0.0"), Value("9.12"), Value(1e300),
                             Value(0.0 / 0.0), Value(-9), Value(true), Value("99999999999")}) {
    EXPECT_EQ(read_compute_capability(value), std::nullopt) << to_text(value);
  }
}

}  // namespace
}  // namespace capstan
