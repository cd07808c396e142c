#include <gtest/gtest.h>

#include "tests/unit/ruleset/rule_fixture.h"

namespace capstan {
namespace {

/// Problems of one rule with this requirement for these releases.
std::string problems_of(const std::string& require,
                        const std::string& applies = "megatron-core >= 0.16 < 0.18") {
  const RulesFromText rules({rule_text(
      "AB001", "applies " + applies + " phase core.graph 1 blame model.num_layers\nrequire " + require)});
  return rules.problems();
}

TEST(Resolve, TakesSoundRules) {
  EXPECT_EQ(problems_of(
                "model.cuda_graph_impl in {\"local\", \"transformer_engine\"} and model.num_layers % 2 = 0"),
            "");
  EXPECT_EQ(
      problems_of(
          "target.transformer-engine >= v2.10 or env.NCCL_GRAPH_REGISTER = \"0\" or cluster.world_size > 8"),
      "");
}

TEST(Resolve, ReportsNames) {
  EXPECT_EQ(problems_of("model.cuda_graph_imp = \"local\""),
            "RU003 5:9 no release has a key or fact `model.cuda_graph_imp`; did you mean "
            "`model.cuda_graph_impl`?\n");
  EXPECT_EQ(problems_of("model.cuda_graph_modules = {}"),
            "RU003 5:9 none of the releases that the rule applies to has `model.cuda_graph_modules`\n");
  EXPECT_EQ(problems_of("model.cuda_graph_modules = {}", "megatron-core >= 0.18"), "");
  EXPECT_EQ(problems_of("target.toch > v2"),
            "RU003 5:9 no release has a key or fact `target.toch`; did you mean `target.torch`?\n");
  EXPECT_EQ(problems_of("sise(model.recompute_modules) = 1"),
            "RU003 5:9 there is no function `sise`; did you mean `size`?\n");
}

TEST(Resolve, ReportsKinds) {
  EXPECT_EQ(problems_of("model.num_layers = \"many\""),
            "RU004 5:9 `model.num_layers` (integer or none) never equals `\"many\"` (string)\n");
  EXPECT_EQ(problems_of("model.num_layers"),
            "RU004 5:9 `model.num_layers` is integer or none, but a condition is needed here: compare it "
            "with something\n");
  EXPECT_EQ(problems_of("model.add_bias_linear < 3"),
            "RU004 5:9 `model.add_bias_linear` (boolean or none) and `3` (integer) have no order\n");
  EXPECT_EQ(problems_of("target.torch > 2.9"),
            "RU004 5:9 `target.torch` (version) and `2.9` (float) have no order\n");
  EXPECT_EQ(problems_of("1 in model.num_layers"),
            "RU004 5:14 `model.num_layers` is integer or none, but a list or set is needed here\n");
  EXPECT_EQ(problems_of("model.num_layers in {\"a\"}"),
            "RU004 5:9 `model.num_layers` (integer or none) is never in `{\"a\"}`, which holds string\n");
  EXPECT_EQ(problems_of("size(3) = 1"), "RU004 5:14 `3` is integer, but list or set is needed here\n");
  EXPECT_EQ(problems_of("divides(3) and 1 = 1"), "RU004 5:9 `divides` takes 2 arguments, not 1\n");
  EXPECT_EQ(problems_of("target.torch in {v2.9}"),
            "RU004 5:26 a set holds booleans, numbers and strings, not `v2.9`\n");
}

TEST(Resolve, ReportsValuesThatNoReleaseHas) {
  EXPECT_EQ(problems_of("model.cuda_graph_impl != \"full_iteration\"", "megatron-core >= 0.18"), "");
  EXPECT_EQ(problems_of("model.cuda_graph_impl != \"full_iteration\""),
            "RU008 5:34 `model.cuda_graph_impl` has the value \"full_iteration\" in none of the releases "
            "that the rule applies to\n");
  EXPECT_EQ(problems_of("model.cuda_graph_impl in {\"locl\"}"),
            "RU008 5:34 `model.cuda_graph_impl` has the value \"locl\" in none of the releases that the rule "
            "applies to; did you "
            "mean \"local\"?\n");
}

TEST(Resolve, ReportsReleasesComponentsPhases) {
  EXPECT_EQ(
      problems_of("1 = 1", "megatron-core >= 0.99"),
      "RU005 4:26 `megatron-core` has no release 0.99; known are 0.14, 0.15, 0.16, 0.17, 0.18, 0.19, 0.20\n");
  EXPECT_EQ(problems_of("1 = 1", "megatron-cor >= 0.16"),
            "RU005 4:9 there is no component `megatron-cor`; did you mean `megatron-core`?\n");
  EXPECT_EQ(problems_of("1 = 1", "megatron-core < 0.16 > 0.17"),
            "RU005 1:6 `AB001` applies to no known stack: its ranges and front-ends exclude each other\n");
  const RulesFromText phase(
      {rule_text("AB001", "applies any phase core.grph 1 require 1 = 1 blame model.num_layers")});
  EXPECT_EQ(phase.problems(), "RU005 4:19 there is no phase `core.grph`; did you mean `core.graph`?\n");
  const RulesFromText frontend(
      {rule_text("AB001", "applies any phase run 1 frontends bridge require 1 = 1 blame model.num_layers")});
  EXPECT_EQ(frontend.problems(), "");
}

TEST(Resolve, ReportsDuplicateCodes) {
  const std::string rule = rule_text("AB001", "applies any phase run 1 require 1 = 1 blame model.num_layers");
  EXPECT_EQ(RulesFromText({rule, rule}).problems(), "RU006 1:6 `AB001` is already given in `rules/0.rule`\n");
  EXPECT_EQ(RulesFromText({rule + rule}).problems(),
            "RU006 6:6 `AB001` is given twice for the same releases\n");
  const auto ranged = [](const std::string& applies) {
    return rule_text("AB001", "applies " + applies + " phase run 1 require 1 = 1 blame model.num_layers");
  };
  EXPECT_EQ(RulesFromText({ranged("megatron-core < 0.17") + ranged("megatron-core >= 0.17")}).problems(), "");
  EXPECT_EQ(RulesFromText({rule}, true).problems(),
            "RU006 1:6 `AB001`: codes of own rules start with `X`, so that they never meet one of Capstan\n");
}

TEST(Resolve, OrdersDefines) {
  const std::string define =
      "define graph.modules { applies megatron-core >= 0.16 phase core.graph 10 value {\"attn\"} }\n";
  const auto reading = [&](const std::string& place) {
    return RulesFromText(
               {define +
                rule_text("AB001", place + " require \"attn\" in graph.modules blame graph.modules")})
        .problems();
  };
  EXPECT_EQ(reading("applies any phase core.graph 11"), "");
  EXPECT_EQ(reading("applies any phase core.graph 10"), "");
  EXPECT_EQ(
      reading("applies any phase core.graph 9"),
      "RU009 5:50 `graph.modules` is read before it is defined; the define needs an earlier phase or step\n"
      "RU009 5:70 `graph.modules` is read before it is defined; the define needs an earlier phase or step\n");
  EXPECT_EQ(reading("applies megatron-core < 0.16 phase core.graph 11"),
            "RU009 5:68 `graph.modules` is not defined for the releases that the rule applies to\n"
            "RU009 5:88 `graph.modules` is not defined for the releases that the rule applies to\n");
  EXPECT_EQ(
      RulesFromText({"define model.x { applies any phase run 1 value 1 }"}).problems(),
      "RU003 1:8 `model` is a section of the config; a fact that rules define needs another first part\n");
}

TEST(Resolve, LeavesBadRulesOut) {
  const RulesFromText rules(
      {rule_text("AB001", "applies any phase run 1 require model.nothing = 1 blame model.num_layers"),
       rule_text("AB002", "applies any phase run 1 require 1 = 1 blame model.num_layers")});
  ASSERT_EQ(rules.rules.items.size(), 1u);
  EXPECT_EQ(rules.rules.items[0].code, "AB002");
}

TEST(Select, ByFrontendEnforcerAndVersion) {
  const auto active_on = [](const std::string& fields, const std::string& stack) {
    const RulesFromText rules(
        {rule_text("AB001", fields + " phase run 1 require 1 = 1 blame model.num_layers")});
    EXPECT_EQ(rules.problems(), "");
    return !select(rules.rules, *builtin_schema().find_stack(stack)).items.empty();
  };
  EXPECT_TRUE(active_on("applies megatron-core >= 0.17", "bridge-0.4"));
  EXPECT_FALSE(active_on("applies megatron-core < 0.17", "bridge-0.4"));
  EXPECT_FALSE(active_on("applies megatron-core >= 0.16", "bridge-0.2"));  // 0.16.0rc0 comes before 0.16
  EXPECT_FALSE(active_on("applies megatron-bridge >= 0.3", "core-0.17"));
  EXPECT_TRUE(active_on("applies any frontends core", "core-0.17"));
  EXPECT_FALSE(active_on("applies any frontends core", "bridge-0.4"));
}

}  // namespace
}  // namespace capstan
