#include <gtest/gtest.h>

#include "compiler/ruleset/message_fragment.h"
#include "compiler/ruleset/rule_values.h"
#include "tests/unit/ruleset/rule_fixture.h"

namespace capstan {
namespace {

/// The value of an expression on a config of bridge-0.4, as text; "unknown" where it is.
std::string value_of(const std::string& expression, const std::string& config = "") {
  const RulesFromText rules({"define test.value { applies any phase run 1 value " + expression + " }"});
  if (!rules.problems().empty()) return rules.problems();
  const FactsFromText facts(config, "bridge-0.4");
  const Evaluation evaluation = evaluate(select(rules.rules, facts.stack), facts.derive(rules.rules));
  FactId id = 0;
  EXPECT_TRUE(rules.rules.names.find("test.value", id));
  const Fact& fact = evaluation.final_facts.values[id];
  if (fact.state == Fact::State::unknown) return "unknown";
  return fact.is_version ? "v" + to_text(fact.version) : to_text(fact.value);
}

TEST(Evaluate, Arithmetic) {
  EXPECT_EQ(value_of("7 // 2"), "3");
  EXPECT_EQ(value_of("-7 // 2"), "-4");  // toward minus infinity, as in Python
  EXPECT_EQ(value_of("-7 % 3"), "2");
  EXPECT_EQ(value_of("7 % -3"), "-2");
  EXPECT_EQ(value_of("7 / 2"), "3.5");
  EXPECT_EQ(value_of("1 // (1 - 1)"), "none");
  EXPECT_EQ(value_of("1.0 % (1 - 1)"), "none");
  EXPECT_EQ(value_of("2 + 3 * 4 - 1"), "13");
  EXPECT_EQ(value_of("1 + 0.5"), "1.5");
  EXPECT_EQ(value_of("9223372036854775807 + 1"), "none");
  EXPECT_EQ(value_of("none ?? 4"), "4");
  EXPECT_EQ(value_of("model.num_moe_experts + 1"), "none");
}

TEST(Evaluate, Comparisons) {
  EXPECT_EQ(value_of("1 = 1.0"), "true");
  EXPECT_EQ(value_of("none = none"), "true");
  EXPECT_EQ(value_of("model.num_moe_experts < 3"), "false");  // none
  EXPECT_EQ(value_of("not model.num_moe_experts < 3"), "true");
  EXPECT_EQ(value_of("target.megatron-core >= v0.17"), "true");
  EXPECT_EQ(value_of("target.megatron-core < v0.17.1rc1"), "false");
  EXPECT_EQ(value_of("target.frontend = \"bridge\""), "true");
}

TEST(Evaluate, Sets) {
  EXPECT_EQ(value_of("size({1, 1.0, 2})"), "2");
  EXPECT_EQ(value_of("{\"a\", \"b\"} minus {\"b\"}"), "[\"a\"]");
  EXPECT_EQ(value_of("{\"a\"} union {\"a\", \"c\"}"), "[\"a\", \"c\"]");
  EXPECT_EQ(value_of("{\"a\"} subset {\"a\", \"c\"}"), "true");
  EXPECT_EQ(value_of("{} subset {}"), "true");
  EXPECT_EQ(value_of("{} overlaps {\"a\"}"), "false");
  EXPECT_EQ(value_of("{\"a\", \"b\"} = {\"b\", \"a\"}"), "true");
  EXPECT_EQ(value_of("model.recompute_modules union {}", "[model]\nrecompute_modules = [\"mlp\", \"mlp\"]"),
            "[\"mlp\"]");
  EXPECT_EQ(
      value_of("model.recompute_modules = {\"mlp\"}", "[model]\nrecompute_modules = [\"mlp\", \"mlp\"]"),
      "true");
  EXPECT_EQ(value_of("length(model.recompute_modules)", "[model]\nrecompute_modules = [\"mlp\", \"mlp\"]"),
            "2");
  EXPECT_EQ(value_of("\"mlp\" in model.recompute_modules"), "false");  // none is the empty set
}

TEST(Evaluate, ModuleTokens) {
  EXPECT_EQ(value_of("tokens(model.cuda_graph_scope)", "[model]\ncuda_graph_scope = \"attn, mlp\""),
            "[\"attn\", \" mlp\"]");
  EXPECT_EQ(value_of("tokens(model.cuda_graph_scope)", "[model]\ncuda_graph_scope = [\"attn\", \"attn\"]"),
            "[\"attn\"]");
  EXPECT_EQ(value_of("tokens(env.X)"), "[]");
  EXPECT_EQ(value_of("tokens(env.X)", "[env]\nX = \"\""), "[\"\"]");
  const std::string members = "[env]\nX = \"CudaGraphScope.attn,mlp\"";
  EXPECT_EQ(value_of("tokens(env.X)", members), "[\"CudaGraphScope.attn\", \"mlp\"]");
  EXPECT_EQ(value_of("members(env.X)", members), "[\"attn\"]");
  EXPECT_EQ(value_of("strings(env.X)", members), "[\"mlp\"]");
}

TEST(Evaluate, Functions) {
  EXPECT_EQ(value_of("split(env.X, \",\")", "[env]\nX = \" a ,b\""), "[\"a\", \"b\"]");
  EXPECT_EQ(value_of("integer(env.X)", "[env]\nX = \" 32 \""), "32");
  EXPECT_EQ(value_of("integer(env.X)", "[env]\nX = \"3x\""), "none");
  EXPECT_EQ(value_of("contains(env.X, \"b\")", "[env]\nX = \"abc\""), "true");
  EXPECT_EQ(value_of("contains(env.X, \"b\")"), "false");
  EXPECT_EQ(
      value_of("starts_with(\"abc\", \"ab\") and ends_with(\"abc\", \"bc\") and lower(\"AbC\") = \"abc\""),
      "true");
  EXPECT_EQ(value_of("max(2, 3) - min(2.5, 3)"), "0.5");
  EXPECT_EQ(value_of("abs(-4)"), "4");
  EXPECT_EQ(value_of("divides(4, 12) and not divides(5, 12) and not divides(1 - 1, 12)"), "true");
  EXPECT_EQ(value_of("sum({1, 2, 3.5})"), "6.5");
  EXPECT_EQ(value_of("before(\"a/b/c\", \"/\") = \"a\" and before(\"abc\", \"/\") = \"abc\""), "true");
  EXPECT_EQ(value_of("after(\"a/b/c\", \"/\") = \"b/c\" and after(\"abc\", \"/\") is none"), "true");
  EXPECT_EQ(
      value_of(
          "before(\"\", \"/\") = \"\" and after(\"a/\", \"/\") = \"\" and before(\"ab\", \"\") = \"ab\""),
      "true");
  EXPECT_EQ(value_of("count(\"a|b||c\", \"|\")"), "3");
  EXPECT_EQ(value_of("count(\"aaa\", \"aa\") = 1 and count(\"abc\", \"\") = 0"), "true");
  EXPECT_EQ(value_of("characters(\"M*M-\") = {\"M\", \"*\", \"-\"} and characters(\"\") = {}"), "true");
  EXPECT_EQ(value_of("characters(\"ée\") = {\"é\", \"e\"}"), "true");
  EXPECT_EQ(value_of("product({2, 3, 0.5})"), "3.0");
  EXPECT_EQ(value_of("product({}) = 1 and product({3, \"a\"}) is none"), "true");
  EXPECT_EQ(value_of("if 1 < 2 then \"yes\" else \"no\""), "\"yes\"");
}

// What PyTorch's parser makes of the string: blanks are dropped, `[...]` belongs to its option, the last one
// counts.
TEST(Evaluate, AllocatorOptions) {
  EXPECT_EQ(allocator_value("expandable_segments:True", "expandable_segments"), Value("True"));
  EXPECT_EQ(allocator_value("max_split_size_mb:64, expandable_segments : True", "expandable_segments"),
            Value("True"));
  EXPECT_EQ(
      allocator_value("roundup_power2_divisions:[256:1,512:2],backend:native", "roundup_power2_divisions"),
      Value("[256:1,512:2]"));
  EXPECT_EQ(allocator_value("max_split_size_mb:32,max_split_size_mb:64", "max_split_size_mb"), Value("64"));
  EXPECT_EQ(allocator_value("expandable_segments_too:True", "expandable_segments"), Value());
  EXPECT_EQ(allocator_value("", "x"), Value());
  // PyTorch stops at what it does not take, so nothing of the string counts.
  EXPECT_EQ(allocator_value("expandable_segments:true", "expandable_segments"), Value());
  EXPECT_EQ(allocator_value("expandable_segments:True,garbage:1", "expandable_segments"), Value());
  EXPECT_EQ(allocator_problem("expandable_segments:True,max_split_size_mb:21"), Value());
  EXPECT_EQ(allocator_problem("max_split_size_mb:20"), Value("`max_split_size_mb` must be greater than 20"));
  EXPECT_EQ(allocator_problem("backend:foo"), Value("`foo` is no allocator backend"));
}

TEST(Evaluate, ThreeValuedLogic) {
  EXPECT_EQ(value_of("target.torch < v2.9"), "unknown");
  EXPECT_EQ(value_of("target.torch < v2.9 and 1 = 2"), "false");
  EXPECT_EQ(value_of("1 = 2 and target.torch < v2.9"), "false");
  EXPECT_EQ(value_of("target.torch < v2.9 or 1 = 1"), "true");
  EXPECT_EQ(value_of("target.torch < v2.9 or 1 = 2"), "unknown");
  EXPECT_EQ(value_of("1 = 2 implies target.torch < v2.9"), "true");
  EXPECT_EQ(value_of("target.torch < v2.9 implies 1 = 1"), "true");
  EXPECT_EQ(value_of("target.torch < v2.9 implies 1 = 2"), "unknown");
  EXPECT_EQ(value_of("target.torch < v2.9 iff 1 = 1"), "unknown");
  EXPECT_EQ(value_of("not target.torch < v2.9"), "unknown");
  EXPECT_EQ(value_of("if target.torch < v2.9 then 1 else 1"), "unknown");
}

TEST(Evaluate, ChecksSeeEarlierRewritesOnly) {
  const std::string rewrite =
      "rewrite AB002 r { enforcer core applies any phase core.graph 20 when model.cuda_graph_impl = "
      "\"local\"\n"
      " set model.num_layers = model.num_layers + 1 set model.hidden_size = model.num_layers\n"
      " message \"changes {model.num_layers}\" why \"w\" source \"a\" \"b\" \"c\" seen \"d\" evidence code "
      "2026-01-01 }\n";
  const RulesFromText rules(
      {rule_text("AB001",
                 "applies any phase core.graph 10 require model.num_layers != 5 blame model.num_layers"),
       rewrite,
       rule_text("AB003",
                 "applies any phase core.graph 30 require model.num_layers != 5 blame model.num_layers"),
       rule_text("AB004",
                 "applies any phase core.graph 5 require model.num_layers != 4 blame model.num_layers")});
  ASSERT_EQ(rules.problems(), "");
  const FactsFromText facts("[model]\nnum_layers = 4\ncuda_graph_impl = \"local\"", "core-0.17");
  const Facts derived = facts.derive(rules.rules);
  const Evaluation evaluation = evaluate(select(rules.rules, facts.stack), derived);
  ASSERT_EQ(evaluation.violations.size(), 3u);
  const auto code = [&](std::size_t index) {
    return rules.rules.items[evaluation.violations[index].item].code;
  };
  EXPECT_EQ(code(0), "AB004");  // by step, not by file
  EXPECT_EQ(code(1), "AB002");
  EXPECT_EQ(code(2), "AB003");
  const Violation& change = evaluation.violations[1];
  ASSERT_EQ(change.changes.size(), 2u);
  EXPECT_EQ(change.changes[0].before, Value(4));
  EXPECT_EQ(change.changes[0].after, Value(5));
  EXPECT_EQ(change.changes[1].after, Value(4));  // all values are those before the rewrite
  EXPECT_EQ(interpolate(rules.rules.items[change.item].message, change, derived, nullptr), "changes 4");
}

TEST(Evaluate, UndecidedChecksNameWhatIsMissing) {
  const RulesFromText rules(
      {"define old.torch { applies any phase core.graph 1 value target.torch < v2.9 }\n" +
       rule_text("AB001", "applies any phase core.graph 2 require not old.torch blame model.num_layers")});
  const FactsFromText facts("", "bridge-0.4");
  const Evaluation evaluation = evaluate(select(rules.rules, facts.stack), facts.derive(rules.rules));
  ASSERT_EQ(evaluation.violations.size(), 1u);
  EXPECT_TRUE(evaluation.violations[0].undecided);
  ASSERT_EQ(evaluation.violations[0].missing.size(), 1u);
  EXPECT_EQ(rules.rules.names.name(evaluation.violations[0].missing[0]), "target.torch");
}

TEST(Evaluate, SetTestsLayersNotValues) {
  EXPECT_EQ(value_of("model.num_moe_experts is set"), "false");
  EXPECT_EQ(value_of("model.add_bias_linear is set", "[model]\nadd_bias_linear = true"), "true");
  EXPECT_EQ(value_of("model.num_moe_experts is none and model.add_bias_linear is bool"), "true");
}

TEST(Evaluate, LongListsAreNotQuadratic) {
  Value::List list;
  for (int index = 0; index < 200000; ++index) list.emplace_back(index % 150000);
  EXPECT_EQ(unique_elements(list).size(), 150000u);
  EXPECT_TRUE(same_set(list, unique_elements(list)));
  EXPECT_FALSE(overlap(list, {Value(-1), Value("x"), Value()}));
}

TEST(Patterns, Stars) {
  EXPECT_TRUE(matches_pattern("*both moe and moe_router*", "x must not contain both moe and moe_router."));
  EXPECT_EQ(fragment_of_pattern("the * size (*) is odd", "size (7) is"), 8u);       // within
  EXPECT_EQ(fragment_of_pattern("the * size (*) is odd", "Error: the batch"), 3u);  // begins before
  EXPECT_EQ(fragment_of_pattern("the * size (*) is odd", "the size (7) is"), 8u);   // begins at a star
  EXPECT_EQ(fragment_of_pattern("the size is odd", "size is odd, at line 3"), 0u);  // ends behind
  EXPECT_EQ(fragment_of_pattern("the size is odd", "size is even"), 0u);
  EXPECT_EQ(fragment_of_pattern("", "x"), 0u);
  EXPECT_TRUE(matches_pattern("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(matches_pattern("a*b", "abc"));
  EXPECT_TRUE(matches_pattern("*", ""));
  EXPECT_FALSE(matches_pattern("", "a"));
  EXPECT_FALSE(matches_pattern("*a*a*a*a*a*a*a*a*b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace capstan
