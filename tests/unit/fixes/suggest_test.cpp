#include "compiler/fixes/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/fixes/apply.h"
#include "compiler/ruleset/resolve.h"
#include "tests/support/bound_config.h"

namespace capstan {
namespace {

std::vector<Diagnostic> lint(const BoundConfig& bound) {
  const ActiveRules rules = select(builtin_rules(), bound.stack);
  StackChoice choice;
  choice.stack = bound.stack;
  Sink sink;
  check_and_suggest({bound.config, *bound.schema, rules, choice, bound.sources}, {}, sink);
  return sink.take();
}

/// The problems of binding as well.
std::vector<Diagnostic> lint_all(BoundConfig& bound) {
  const ActiveRules rules = select(builtin_rules(), bound.stack);
  StackChoice choice;
  choice.stack = bound.stack;
  check_and_suggest({bound.config, *bound.schema, rules, choice, bound.sources}, {}, bound.sink);
  return bound.sink.take();
}

const Diagnostic* find(const std::vector<Diagnostic>& diagnostics, const std::string& code) {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (diagnostic.code == code) return &diagnostic;
  }
  return nullptr;
}

constexpr const char* kFullRecompute =
    "[model]\n"
    "cuda_graph_impl = \"transformer_engine\"  # per layer\n"
    "cuda_graph_scope = [\"attn\", \"mlp\"]\n"
    "recompute_granularity = \"full\"\n"
    "recompute_method = \"uniform\"\n"
    "recompute_num_layers = 1\n"
    "use_te_rng_tracker = true\n"
    "[rng]\n"
    "te_rng_tracker = true\n";

// The known case: exactly the three ways that practitioners use, best first, each verified.
TEST(Suggest, FullRecomputeWithScopedGraphsHasThreeWaysOut) {
  const auto bound = bind_text(kFullRecompute, "bridge-0.4");
  const std::vector<Diagnostic> findings = lint(*bound);
  const Diagnostic* finding = find(findings, "CG027");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->severity, Severity::error);
  ASSERT_EQ(finding->fixes.size(), 3u);
  const std::vector<std::string> wanted[] = {
      {"recompute_granularity = \"selective\"", "recompute_modules = ["},
      {"cuda_graph_impl = \"none\"  # per layer"},
      {"cuda_graph_impl = \"local\"  # per layer", "cuda_graph_scope = [\"full_iteration\"]",
       "check_for_nan_in_loss = false"}};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(finding->fixes[i].verified);
    const auto text = apply_edits(bound->sources[0].bytes(), finding->fixes[i].edits);
    ASSERT_TRUE(text);
    for (const std::string& part : wanted[i])
      EXPECT_NE(text->find(part), std::string::npos) << part << "\n" << *text;
    const auto again = bind_text(*text, "bridge-0.4");
    EXPECT_FALSE(again->sink.has_errors());
    for (const Diagnostic& left : lint(*again))
      EXPECT_NE(left.severity, Severity::error) << left.code << " " << left.message;
  }
}

// Every value that takes part is labelled with its place; nothing else is.
TEST(Check, LabelsTheValuesThatTakePart) {
  const auto bound = bind_text(kFullRecompute, "bridge-0.4");
  const Diagnostic* finding = nullptr;
  const std::vector<Diagnostic> findings = lint(*bound);
  finding = find(findings, "CG027");
  ASSERT_NE(finding, nullptr);
  std::vector<std::string> texts;
  for (const Label& label : finding->labels) texts.emplace_back(bound->sources.text(label.span));
  EXPECT_EQ(texts, (std::vector<std::string>{"\"full\"", "\"transformer_engine\"", "[\"attn\", \"mlp\"]"}));
  EXPECT_TRUE(finding->labels[0].primary);
}

// Several broken rules come in one run, and list elements are marked one by one.
TEST(Check, ReportsSeveralBrokenRulesAtOnce) {
  const auto bound = bind_text(
      "[model]\nnum_moe_experts = 8\ncuda_graph_impl = \"transformer_engine\"\n"
      "cuda_graph_scope = [\"attn\", \"moe\", \"moe_router\"]\ncpu_offloading = true\n",
      "bridge-0.4");
  const std::vector<Diagnostic> findings = lint(*bound);
  std::size_t errors = 0;
  const Diagnostic* both = nullptr;
  for (const Diagnostic& finding : findings) {
    errors += finding.severity == Severity::error;
    if (finding.message.find("moe_router") != std::string::npos && finding.severity == Severity::error)
      both = &finding;
  }
  EXPECT_GE(errors, 3u);  // tracker, moe with moe_router, offloading
  ASSERT_NE(both, nullptr);
}

TEST(Check, RulesThatReadABrokenKeyStaySilent) {
  const auto bound =
      bind_text("[model]\ncuda_graph_impl = 3\ncuda_graph_scope = [\"moe\", \"moe_router\"]\n", "bridge-0.4");
  ASSERT_TRUE(bound->sink.has_errors());
  for (const Diagnostic& finding : lint(*bound)) {
    EXPECT_EQ(std::count(finding.keys.begin(), finding.keys.end(), "model.cuda_graph_impl"), 0)
        << finding.code;
  }
}

struct RunCase {
  const char* code;
  const char* stack;
  const char* text;
};

class KeysOfTheRun : public testing::TestWithParam<RunCase> {};

// What a run reads, keeps, or how long it trains is the user's word: no rule's author calls these ways safe.
TEST_P(KeysOfTheRun, AreNeverChangedUnasked) {
  const auto bound = bind_text(GetParam().text, GetParam().stack);
  const std::vector<Diagnostic> findings = lint(*bound);
  const Diagnostic* finding = find(findings, GetParam().code);
  ASSERT_NE(finding, nullptr);
  EXPECT_FALSE(finding->fixes.empty());
  for (const Fix& fix : finding->fixes) EXPECT_NE(fix.applicability, Applicability::safe) << fix.title;
}

INSTANTIATE_TEST_SUITE_P(
    Fixes, KeysOfTheRun,
    testing::Values(
        RunCase{"SC026", "megatron-lm-0.19", "[train]\ntrain_iters = 10\n[validation]\neval_interval = 0\n"},
        RunCase{"ML035", "megatron-lm-0.19", "[checkpoint]\nsave = \"/ckpt\"\nsave_interval = 0\n"},
        RunCase{"ML063", "megatron-lm-0.19",
                "[dataset]\ndata_path = [\"a\"]\n[arguments]\nmock_data = true\n"},
        RunCase{"ML042", "megatron-lm-0.17",
                "[checkpoint]\nload = \"out\"\nload_main_params_from_ckpt = true\n"},
        RunCase{"SC003", "bridge-0.6", "[train]\nnum_epochs = 2.0\n[dataset]\ntype = \"GPTDatasetConfig\"\n"},
        RunCase{"PL032", "bridge-0.5",
                "[cluster]\nnodes = 1\ngpus_per_node = 8\n[train]\nmicro_batch_size = 1\n"
                "global_batch_size = 16\n[validation]\neval_global_batch_size = 12\n"}),
    [](const auto& test) { return std::string(test.param.code); });

std::string after_first_fix(const BoundConfig& bound, const std::string& code) {
  const std::vector<Diagnostic> findings = lint(bound);
  const Diagnostic* finding = find(findings, code);
  if (finding == nullptr || finding->fixes.empty()) return "no fix for " + code;
  EXPECT_TRUE(finding->fixes[0].verified);
  return apply_edits(bound.sources[0].bytes(), finding->fixes[0].edits).value_or("edits do not fit");
}

// What a rule's author calls another name of a key stays as it is written, comments in the list included.
TEST(Suggest, AKeyUnderItsNewNameKeepsItsText) {
  const std::string list = " = [\n  'attn',  # norm and residual\n  'mlp'\n]  # measured\n";
  const std::string head = "[model]\ncuda_graph_impl = \"transformer_engine\"\nuse_te_rng_tracker = true\n";
  const std::string tail = "[rng]\nte_rng_tracker = true\n";
  const auto bound = bind_text(head + "cuda_graph_scope" + list + tail, "bridge-0.5");
  EXPECT_EQ(after_first_fix(*bound, "MG001"), head + "cuda_graph_modules" + list + tail);
}

// Two keys of one value, each to its own new place with its own comment.
TEST(Suggest, KeysOfOneValueMoveToTheirOwnNames) {
  const auto bound = bind_text(
      "[train]\ntrain_iters = 100\neval_interval = 50  # how often\neval_iters = 50  # how long\n"
      "[checkpoint]\nsave_interval = 50  # not this one\n",
      "bridge-0.4");
  const std::string text = after_first_fix(*bound, "MG003");
  for (const char* const line : {"eval_interval = 50  # how often\n", "eval_iters = 50  # how long\n",
                                 "[checkpoint]\nsave_interval = 50  # not this one\n"})
    EXPECT_NE(text.find(line), std::string::npos) << text;
  EXPECT_GT(text.find("eval_iters"), text.find("[validation]")) << text;
  EXPECT_GT(text.find("eval_interval"), text.find("[validation]")) << text;
}

// A word that no release knows is guessed for plain strings as for lists, and only where that clears the
// finding.
TEST(Suggest, AWordInAnotherCaseIsGuessed) {
  const auto bound = bind_text(
      "[model]\nrecompute_granularity = 'Full'  # all\nrecompute_method = \"uniform\"\n"
      "recompute_num_layers = 1\n",
      "bridge-0.4");
  const std::vector<Diagnostic> findings = lint(*bound);
  ASSERT_FALSE(findings.empty());
  ASSERT_FALSE(findings[0].fixes.empty()) << findings[0].code;
  EXPECT_TRUE(findings[0].fixes[0].verified);
  EXPECT_EQ(findings[0].fixes[0].title, "write `full` in place of `Full`");
}

std::vector<std::string> titles(const Diagnostic& finding) {
  std::vector<std::string> out;
  for (const Fix& fix : finding.fixes) out.push_back(fix.title);
  return out;
}

std::size_t index_of(const std::vector<std::string>& titles, const std::string& wanted) {
  return static_cast<std::size_t>(std::find(titles.begin(), titles.end(), wanted) - titles.begin());
}

// A job that trains nothing, or keeps nothing, comes after all ways that leave it what it is.
TEST(Suggest, AnotherRunIsTheLastWay) {
  const auto evaluation =
      lint(*bind_text("[train]\ntrain_iters = 10\n[validation]\neval_interval = 0\n", "megatron-lm-0.19"));
  const Diagnostic* finding = find(evaluation, "SC026");
  ASSERT_NE(finding, nullptr);
  const std::vector<std::string> ways = titles(*finding);
  ASSERT_FALSE(ways.empty());
  EXPECT_EQ(ways[0], "unset `validation.eval_interval`");
  for (const char* const other :
       {"set `train.skip_train` to `true`", "set `validation.skip_train` to `true`"}) {
    for (std::size_t way = index_of(ways, other); way < ways.size(); ++way)
      EXPECT_EQ(ways[way].find("eval_interval"), std::string::npos) << ways[way] << " after " << other;
  }
  const auto saving =
      lint(*bind_text("[checkpoint]\nsave = \"/ckpt\"\nsave_interval = 0\n", "megatron-lm-0.19"));
  finding = find(saving, "ML035");
  ASSERT_NE(finding, nullptr);
  const std::vector<std::string> kept = titles(*finding);
  EXPECT_LT(index_of(kept, "unset `checkpoint.save_interval`"), index_of(kept, "unset `checkpoint.save`"));
}

// One wrong word is taken out before the list is, or what the list is for.
TEST(Suggest, AStrangeWordGoesBeforeItsList) {
  const auto findings =
      lint(*bind_text("[model]\nrecompute_granularity = \"selective\"\n"
                      "recompute_modules = [\"moe_routr\", \"core_attn\"]\n",
                      "bridge-0.6"));
  const Diagnostic* finding = find(findings, "RC005");
  ASSERT_NE(finding, nullptr);
  ASSERT_FALSE(finding->fixes.empty());
  EXPECT_EQ(finding->fixes[0].title, "leave `moe_routr` out");
  EXPECT_TRUE(finding->fixes[0].verified);
  EXPECT_GT(finding->fixes.size(), 1u);
}

// A key under another name is read from then on: that costs what the key decides.
TEST(Suggest, ARenameCostsWhatTheKeyDecides) {
  const auto bound = bind_text("[optimizer]\nadam_beta3 = 0.9\n", "bridge-0.6");
  std::vector<Diagnostic> problems = lint_all(*bound);
  const Diagnostic* finding = find(problems, "TY002");
  ASSERT_NE(finding, nullptr);
  ASSERT_EQ(finding->fixes.size(), 1u);
  EXPECT_EQ(finding->fixes[0].cost, CostClass::numerics);
  EXPECT_EQ(finding->fixes[0].applicability, Applicability::unsafe);
  const auto both =
      bind_text("[optimizer]\nadam_beta3 = 0.9\nadam_beta1 = 0.8\nadam_beta2 = 0.9\n", "bridge-0.6");
  problems = lint_all(*both);
  finding = find(problems, "TY002");
  ASSERT_NE(finding, nullptr);
  EXPECT_TRUE(finding->fixes.empty());
}

TEST(Check, IsDeterministic) {
  const auto once = lint(*bind_text(kFullRecompute, "bridge-0.4"));
  const auto twice = lint(*bind_text(kFullRecompute, "bridge-0.4"));
  ASSERT_EQ(once.size(), twice.size());
  for (std::size_t i = 0; i < once.size(); ++i) {
    EXPECT_EQ(once[i].fingerprint, twice[i].fingerprint);
    EXPECT_EQ(once[i].keys, twice[i].keys);
    EXPECT_EQ(once[i].fixes.size(), twice[i].fixes.size());
  }
}

}  // namespace
}  // namespace capstan
