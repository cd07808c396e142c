#include "compiler/config/bind.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/config/conform.h"
#include "compiler/config/release_gap.h"
#include "tests/unit/config/config_from_text.h"

namespace capstan {
namespace {

using test::compose_text;
using test::Composed;

/// Binds against a release of the embedded schema.
void bind_text(Composed& result, const std::string& text, const char* stack = "bridge-0.4",
               const std::vector<std::string>& overrides = {}) {
  compose_text(result, text, overrides);
  if (!result.config) return;
  const SchemaView view(builtin_schema(), *builtin_schema().find_stack(stack));
  bind(*result.config, view, result.sink);
}

TEST(Bind, ConvertsAsTheFrameworkDoes) {
  Composed result;
  bind_text(result, "[model]\nlayernorm_epsilon = 1\nparams_dtype = \"torch.bfloat16\"\n");
  EXPECT_EQ(result.messages(), "");
  EXPECT_EQ(result.config->find("model.layernorm_epsilon")->value, Value(1.0));
  EXPECT_EQ(result.config->find("model.params_dtype")->value, Value("bf16"));
}

TEST(Bind, NoneCanBeWrittenWhereItCanMeanNothingElse) {
  Composed result;
  bind_text(result, "[model]\nvirtual_pipeline_model_parallel_size = \"none\"\ncuda_graph_impl = \"none\"\n",
            "bridge-0.4", {"model.recompute_num_layers=null"});
  EXPECT_EQ(result.messages(), "");
  EXPECT_TRUE(result.config->find("model.virtual_pipeline_model_parallel_size")->value.is_none());
  EXPECT_EQ(result.config->find("model.cuda_graph_impl")->value, Value("none"));  // a legal word of that key
  EXPECT_TRUE(result.config->find("model.recompute_num_layers")->value.is_none());
}

TEST(Bind, PatternsOfTheCommandLineAreListsAndNumbers) {
  Composed result;
  bind_text(result, "[model]\nmoe_layer_freq = \"([0]*1+[1]*2)*2\"\nno_rope_freq = \"4\"\n",
            "megatron-lm-0.19");
  EXPECT_EQ(result.messages(), "");
  EXPECT_EQ(to_text(result.config->find("model.moe_layer_freq")->value), "[0, 1, 1, 0, 1, 1]");
  EXPECT_EQ(result.config->find("model.no_rope_freq")->value, Value(4));

  Composed wrong;
  bind_text(wrong, "[model]\nmoe_layer_freq = \"0,1\"\n", "megatron-lm-0.19");
  EXPECT_EQ(wrong.messages(),
            "TY004 `model.moe_layer_freq` is the string `\"0,1\"`; needs an integer, a pattern such as "
            "\"[0]*3+[1]*58\" "
            "or a list of "
            "integers\n");
  Composed bridge;  // TransformerConfig takes no text
  bind_text(bridge, "[model]\nmoe_layer_freq = \"[0]*1+[1]*2\"\nwindow_size = 512\n", "bridge-0.6");
  EXPECT_EQ(bridge.messages(),
            "TY004 `model.moe_layer_freq` is the string `\"[0]*1+[1]*2\"`; needs an integer or a list of "
            "integers\n");
  Composed core;
  bind_text(core, "[model]\nwindow_size = 512\n", "core-0.19");
  EXPECT_EQ(core.messages(),
            "TY004 `model.window_size` is the integer `512`; needs a list of integers or none\n");
}

TEST(Bind, ListsBrokenAndOpenKeys) {
  Composed result;
  bind_text(result, "[model]\nnum_layers = \"x\"\nhidden_size = \"?\"\nnope = 1\n[wat]\na = 1\n");
  EXPECT_EQ(result.config->open, std::vector<std::string>{"model.hidden_size"});
  EXPECT_EQ(result.config->broken, (std::vector<std::string>{"model.nope", "model.num_layers", "wat.a"}));
}

TEST(Bind, MembersOfAnEnumMayBeNamedAsPythonDoes) {
  const auto messages = [](const std::string& scope) {
    Composed result;
    bind_text(result, "[model]\ncuda_graph_scope = " + scope + "\n");
    return result.messages();
  };
  EXPECT_EQ(messages("[\"CudaGraphScope.attn\", \"mlp\"]"), "");
  EXPECT_NE(messages("[\"CudaGraphScope.atn\"]").find("TY005"), std::string::npos);
  EXPECT_NE(messages("[\"scope.attn\"]").find("TY005"), std::string::npos);
}

// A name of 4 bytes, `=`, the value and the final NUL are what Linux takes (MAX_ARG_STRLEN, 131,072 bytes).
TEST(Bind, VariablesAreNoLongerThanAProcessCanBeGiven) {
  const auto broken = [](std::size_t size) {
    Composed result;
    bind_text(result, "[env]\nNAME = \"" + std::string(size, 'a') + "\"\n");
    return std::pair(result.messages(), result.config->broken);
  };
  EXPECT_EQ(broken(131066).first, "");
  const auto [messages, keys] = broken(131067);
  EXPECT_NE(messages.find("TY004"), std::string::npos) << messages;
  EXPECT_EQ(keys, std::vector<std::string>{"env.NAME"});
}

TEST(Bind, LeavesKeysOfNamedSectionsOpen) {
  const auto open_keys = [](const std::string& text) {
    Composed result;
    bind_text(result, text);
    EXPECT_EQ(result.messages(), "");
    return
        [open = result.config->open](const char* key) { return std::count(open.begin(), open.end(), key); };
  };
  const auto of_model = open_keys("open = [\"model\", \"model\"]\n[model]\nnum_layers = 2\n");
  EXPECT_EQ(of_model("model.hidden_size"), 1);
  EXPECT_EQ(of_model("model.num_layers"), 0);  // what is set is known
  EXPECT_EQ(of_model("ddp.overlap_grad_reduce"), 0);
  const auto of_all = open_keys("open = true\n[model]\nnum_layers = 2\n");
  EXPECT_EQ(of_all("model.hidden_size") + of_all("ddp.overlap_grad_reduce"), 2);
  EXPECT_EQ(of_all("model.num_layers") + of_all("cluster.nodes") + of_all("target.stack"), 0);
  EXPECT_EQ(open_keys("open = false\n[model]\nnum_layers = 2\n")("model.hidden_size"), 0);
}

TEST(Bind, AKeyOfAnotherReleaseIsNotConcludedFrom) {
  Composed later;  // the name of 0.18: what it means is said under the name of 0.17, which rules read
  bind_text(later, "[model]\ncuda_graph_modules = [\"attn\"]\n");
  EXPECT_EQ(later.config->broken,
            (std::vector<std::string>{"model.cuda_graph_scope", "model.cuda_graph_modules"}));
  Composed both;  // stated under its own name as well: that counts
  bind_text(both, "[model]\ncuda_graph_modules = [\"attn\"]\ncuda_graph_scope = [\"attn\"]\n");
  EXPECT_EQ(both.config->broken, (std::vector<std::string>{"model.cuda_graph_modules"}));
}

TEST(Bind, OneDiagnosticForAnUnknownSection) {
  Composed result;
  bind_text(result, "[wat]\na = 1\nb = 2\nc = 3\n[empty]\n");
  EXPECT_EQ(result.messages(), "TY001 unknown section `empty`\nTY001 unknown section `wat`\n");
}

TEST(Bind, ASectionMustBeATable) {
  Composed result;
  bind_text(result, "model = 3\n");
  EXPECT_EQ(result.messages(), "TY004 section `model` must be a table\n");
}

TEST(Bind, SaysWhenASectionCame) {
  // Megatron Bridge 0.4 split [validation] from [train].
  Composed result;
  bind_text(result, "[validation]\neval_iters = 1\n", "bridge-0.3");
  ASSERT_EQ(result.sink.diagnostics().size(), 1u) << result.messages();
  EXPECT_EQ(result.sink.diagnostics().front().code, "TY003");
  EXPECT_NE(result.messages().find(
                "section `validation` does not exist before megatron-bridge 0.4.0; bridge-0.3 has 0.3.1"),
            std::string::npos)
      << result.messages();
}

TEST(Bind, ComponentsMayBeWrittenWithUnderscores) {
  Composed result;
  bind_text(result, "[target]\ntransformer_engine = \"2.10\"\ntransformer-engine = \"2.10\"\nnccl = 2\n");
  EXPECT_EQ(result.messages(),
            "TY004 `target.nccl` is the integer `2`; needs a version such as \"2.10\" or none\n");
}

TEST(Bind, AListOfWrongWordsIsToldByItsFirst) {
  const auto told = [](int words) {
    std::string text = "[model]\ncuda_graph_scope = [";
    for (int i = 0; i < words; ++i) text += "\"w" + std::to_string(i) + "\", ";
    Composed result;
    bind_text(result, text + "]\n");
    const std::string messages = result.messages();
    const std::size_t last = messages.rfind('\n', messages.size() - 2);
    return std::to_string(std::count(messages.begin(), messages.end(), '\n')) + messages.substr(last);
  };
  EXPECT_EQ(told(20), "20\nTY005 `model.cuda_graph_scope` holds `\"w19\"`, which bridge-0.4 does not know\n");
  EXPECT_EQ(told(4096),
            "21\nTY005 `model.cuda_graph_scope` holds 4076 more words that bridge-0.4 does not know\n");
}

TEST(Bind, AListTooLongToCheckIsToldAsOne) {
  std::string text = "[model]\ncuda_graph_scope = [";
  for (int i = 0; i < 4097; ++i) text += "\"attn\", ";
  Composed result;
  bind_text(result, text + "]\n");
  EXPECT_EQ(result.messages(),
            "TY004 `model.cuda_graph_scope` is a list of 4097 elements; at most 4096 can be checked\n");
}

TEST(Bind, NaNIsNoNumberForAnyKey) {
  Composed result;
  bind_text(result,
            "[model]\nattention_dropout = nan\nrotary_base_per_layer = [1.0, -nan]\n[optimizer]\nlr = +nan\n"
            "clip_grad = inf\n",
            "bridge-0.6");
  EXPECT_EQ(result.messages(),
            "TY005 `model.attention_dropout` is `nan`, which is no number; needs a number\n"
            "TY005 `model.rotary_base_per_layer` holds `nan`, which is no number; needs a list of numbers or "
            "none\n"
            "TY005 `optimizer.lr` is `nan`, which is no number; needs a number or none\n");
  // Rules that read it are undecided instead of judging the default.
  EXPECT_EQ(result.config->broken.size(), 3u);
}

TEST(Bind, CutsLongValuesInsideNoCharacter) {
  Composed result;
  std::string umlauts;
  for (int i = 0; i < 100; ++i) umlauts += "ä";
  bind_text(result, "[model]\nnum_layers = \"" + umlauts + "\"\n");
  const std::string message = result.messages();
  EXPECT_LT(message.size(), 200u);
  EXPECT_NE(message.find("ä..."), std::string::npos) << message;
}

TEST(Conform, AnIntegerThatNoDoubleHoldsStaysExact) {
  KeySpec spec;
  spec.type = *parse_type("float");
  Value value(std::int64_t{9007199254740993});
  EXPECT_FALSE(conform(value, spec));
  EXPECT_EQ(value, Value(std::int64_t{9007199254740993}));
}

TEST(Conform, EveryDefaultOfTheBuiltinSchemaFitsItsKey) {
  for (const KeyInfo& key : builtin_schema().keys()) {
    for (const KeyRange& range : key.ranges) {
      if (!range.spec.has_default) continue;
      Value value = range.spec.default_value;
      EXPECT_FALSE(conform(value, range.spec)) << key.path << " of " << range.component << ": "
                                               << to_text(value) << " as " << range.spec.type_text;
    }
  }
}

TEST(Conform, KnowsListElements) {
  KeySpec spec;
  spec.type = *parse_type("list<float>");
  Value value(Value::List{Value(1), Value(0.5)});
  EXPECT_FALSE(conform(value, spec));
  EXPECT_EQ(value, Value(Value::List{Value(1.0), Value(0.5)}));
  Value wrong(Value::List{Value(1), Value("x")});
  const auto misfit = conform(wrong, spec);
  ASSERT_TRUE(misfit);
  EXPECT_TRUE(misfit->wrong_type);
  EXPECT_EQ(misfit->item, 1u);
}

TEST(ReleaseGap, NamesTheComponentAndTheRelease) {
  Stack stack;
  stack.name = "s";
  stack.components = {{"megatron-core", *parse_version("0.17.1")}};
  KeyRange range;
  range.component = "megatron-core";
  range.since = parse_version("0.18");
  EXPECT_EQ(release_gap({range}, stack), "does not exist before megatron-core 0.18.0; s has 0.17.1");
  range.since.reset();
  range.until = parse_version("0.16");
  EXPECT_EQ(release_gap({range}, stack), "was removed in megatron-core 0.16.0; s has 0.17.1");
  range.component = "megatron-lm";
  EXPECT_EQ(release_gap({range}, stack), "belongs to megatron-lm, which s does not use");
}

}  // namespace
}  // namespace capstan
