#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "compiler/config/bind.h"
#include "tests/unit/config/read_fixture.h"

namespace capstan {
namespace {

TEST(DetectFormat, ByContent) {
  const auto detect = [](const char* name, const char* text) {
    return std::string(format_name(detect_format(name, text)));
  };
  EXPECT_EQ(detect("a", "MODEL_ARGS:\n  --x: 1\n"), "functional-test");
  EXPECT_EQ(detect("a", "model:\n  _target_: x.Y\n"), "bridge-yaml");
  EXPECT_EQ(detect("a.yaml", "model:\n  num_layers: 2\n"), "bridge-yaml");
  EXPECT_EQ(detect("-", "model:\n  num_layers: 2\n"), "bridge-yaml");
  EXPECT_EQ(detect("a", "{\n \"hidden_size\": 1}"), "hf-config");
  EXPECT_EQ(detect("a", "#!/bin/bash\npython x.py --y 1\n"), "megatron-args");
  EXPECT_EQ(detect("a", "--num-layers 2\n"), "megatron-args");
  EXPECT_EQ(detect("a", "#SBATCH -N 2\nsrun x\n"), "megatron-args");
  EXPECT_EQ(detect("a", "from x import y\ncfg.model.a = 1\n"), "python");
  EXPECT_EQ(detect("a", "+model.a=1\n~b.c\n"), "hydra");
  EXPECT_EQ(detect("a", "model.a=1\n"), "toml");
  EXPECT_EQ(detect("a", "[model]\na = 1\n"), "toml");
  EXPECT_EQ(detect("a.toml", "MODEL_ARGS: 1"), "toml");
  EXPECT_EQ(detect("a", ""), "toml");
}

TEST(BridgeYaml, ReadsSectionsAndObjects) {
  const Read read("run_config.yaml",
                  "_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n  _target_: "
                  "megatron.bridge.models.GPTModelProvider\n"
                  "  num_layers: 4\n  params_dtype:\n    _target_: torch.bfloat16\n    _call_: false\n"
                  "  activation_func:\n    _target_: torch.nn.functional.silu\n    _call_: false\n"
                  "  attention_backend:\n    _target_: megatron.core.transformer.enums.AttnBackend\n    "
                  "_args_: [5]\n    _call_: true\n"
                  "  nonsense_key: 1\nft: null\ntrain:\n  micro_batch_size: 2\nmixed_precision: bf16_mixed\n",
                  "bridge-0.4");
  ASSERT_TRUE(read.good);
  EXPECT_EQ(read.value("model.num_layers"), "4");
  EXPECT_EQ(read.value("model.params_dtype"), "\"bf16\"");
  EXPECT_EQ(read.value("model.activation_func"), "\"F.silu\"");
  EXPECT_EQ(read.value("model.attention_backend"), "\"auto\"");
  EXPECT_EQ(read.value("train.micro_batch_size"), "2");
  EXPECT_EQ(read.value("mixed_precision.recipe"), "\"bf16_mixed\"");
  EXPECT_EQ(read.findings(), "EX001 `nonsense_key` ");
}

TEST(PythonRecipe, ReadsAssignments) {
  const Read read("recipe.py",
                  "from x import y\ndef config():\n    cfg = y()\n    cfg.model.num_layers = 4\n    "
                  "cfg.train.micro_batch_size = 2 * n\n"
                  "    cfg.model.no_such_key = 1\n    cfg.mixed_precision = 'bf16_mixed'\n    return cfg\n",
                  "bridge-0.4");
  ASSERT_TRUE(read.good);
  EXPECT_EQ(read.value("model.num_layers"), "4");
  EXPECT_EQ(read.place("model.num_layers"), "cfg.model.num_layers|4");
  EXPECT_EQ(read.value("train.micro_batch_size"), "\"?\"");
  EXPECT_EQ(read.value("mixed_precision.recipe"), "\"bf16_mixed\"");
  EXPECT_EQ(read.findings(), "EX006 `y()` EX004 `2 * n` EX001 `cfg.model.no_such_key` ");
}

TEST(HydraOverrides, ReadsLines) {
  const Read read("o.txt",
                  "# c\nmodel.num_layers=4\n++env_vars.NCCL_ALGO=Ring\nmodel.cuda_graph_scope=[attn,mlp]\n",
                  "bridge-0.4", ConfigFormat::hydra);
  ASSERT_TRUE(read.good) << read.findings();
  EXPECT_EQ(read.value("model.num_layers"), "4");
  EXPECT_EQ(read.value("env.NCCL_ALGO"), "\"Ring\"");
  EXPECT_EQ(read.value("model.cuda_graph_scope"), "[\"attn\", \"mlp\"]");
  const Read bad("o.txt", "model.num_layers=4\nmodel.x=[1\n", "bridge-0.4", ConfigFormat::hydra);
  EXPECT_FALSE(bad.good);
  EXPECT_EQ(bad.sources[0].locate(bad.sink.diagnostics()[0].labels[0].span.begin).line, 2u);
}

TEST(HydraOverrides, CountInTheirOrder) {
  const Read later("o.txt", "model.hidden_size=64\n~model.hidden_size\n++model.hidden_size=65\n",
                   "bridge-0.4", ConfigFormat::hydra);
  EXPECT_EQ(later.value("model.hidden_size"), "65");
  EXPECT_EQ(later.findings(), "");  // nothing stands twice: the first was taken away
  const Read gone("o.txt",
                  "model.hidden_size=64\nmodel.hidden_size=65\n~model.hidden_size\nmodel.num_layers=4\n",
                  "bridge-0.4", ConfigFormat::hydra);
  EXPECT_EQ(gone.config.find("model.hidden_size"), nullptr);
  EXPECT_EQ(gone.value("model.num_layers"), "4");
  EXPECT_EQ(gone.findings(), "EX007 `model.hidden_size` ");
  const Read section("o.txt", "model.hidden_size=64\nmodel.num_layers=4\n~model\nmodel.num_layers=8\n",
                     "bridge-0.4", ConfigFormat::hydra);
  EXPECT_EQ(section.config.find("model.hidden_size"), nullptr);
  EXPECT_EQ(section.value("model.num_layers"), "8");
  // As Hydra has it: what is not there yet cannot be removed.
  const Read early("o.txt", "~model.hidden_size\nmodel.hidden_size=64\n", "bridge-0.4", ConfigFormat::hydra);
  EXPECT_EQ(early.value("model.hidden_size"), "64");
}

TEST(HfConfig, BecomesTheModelSection) {
  const Read read("config.json",
                  "{\"model_type\": \"llama\", \"hidden_size\": 64, \"num_hidden_layers\": 2, "
                  "\"num_key_value_heads\": 4, \"rms_norm_eps\": 1e-05,\n"
                  " \"hidden_act\": \"silu\", \"tie_word_embeddings\": false, \"torch_dtype\": \"bfloat16\"}",
                  "bridge-0.4");
  ASSERT_TRUE(read.good) << read.findings();
  EXPECT_EQ(read.value("model.hidden_size"), "64");
  EXPECT_EQ(read.value("model.num_layers"), "2");
  EXPECT_EQ(read.value("model.num_query_groups"), "4");
  EXPECT_EQ(read.value("model.layernorm_epsilon"), "1e-05");
  EXPECT_EQ(read.value("model.normalization"), "\"RMSNorm\"");
  EXPECT_EQ(read.value("model.gated_linear_unit"), "true");
  EXPECT_EQ(read.value("model.share_embeddings_and_output_weights"), "false");
  EXPECT_EQ(Read("config.json", "{\"a\": 1}", "bridge-0.4").findings(), "EX005 `{` ");
}

TEST(HfConfig, AbsentFieldsHaveTheDefaultsOfTheFamily) {
  const Read read("config.json", "{\"model_type\": \"llama\", \"hidden_size\": 64, \"rope_theta\": 500000}",
                  "bridge-0.4");
  EXPECT_EQ(read.findings(), "EX004 `\"llama\"` ");
  EXPECT_EQ(read.value("model.hidden_size") + " " + read.value("model.rotary_base"), "64 500000");
  for (const char* const key : {"model.num_layers", "model.attention_dropout", "model.vocab_size"})
    EXPECT_EQ(read.value(key), "\"?\"") << key;
  EXPECT_EQ(read.value("model.num_moe_experts"), "absent");  // no llama has any
  EXPECT_EQ(read.value("model.normalization"), "\"RMSNorm\"");
  EXPECT_EQ(Read("config.json", "{\"model_type\": \"mixtral\"}", "bridge-0.4").value("model.num_moe_experts"),
            "\"?\"");
  // Without a family that is known all keys of the model that are not stated are open.
  for (const char* const type :
       {"", ", \"model_type\": 5", ", \"model_type\": null", ", \"model_type\": \"x\""}) {
    const Read other("config.json", "{\"hidden_size\": 64" + std::string(type) + "}", "bridge-0.4");
    EXPECT_EQ(other.record.open_sections, std::vector<std::string>{"model"}) << type;
    EXPECT_EQ(other.sink.diagnostics().size(), 1u) << type;
  }
}

TEST(HfConfig, SharedExpertsOfUnknownSizeAreOpen) {
  const auto read = [](const std::string& fields) {
    const Read config("config.json", "{\"hidden_size\": 64, " + fields + "}", "bridge-0.4");
    // The first finding is the family, which is not stated.
    const std::string findings = config.findings(), family = "EX001 `` ";
    EXPECT_TRUE(findings.starts_with(family)) << findings;
    return findings.substr(std::min(family.size(), findings.size())) +
           config.value("model.moe_shared_expert_intermediate_size");
  };
  EXPECT_EQ(read("\"n_shared_experts\": 2, \"moe_intermediate_size\": 128"), "256");
  EXPECT_EQ(read("\"n_shared_experts\": 0"), "absent");
  EXPECT_EQ(read("\"n_shared_experts\": null"), "absent");
  EXPECT_EQ(read("\"n_shared_experts\": 2"), "EX004 `2` \"?\"");
  EXPECT_EQ(read("\"n_shared_experts\": 2, \"moe_intermediate_size\": \"x\""), "EX004 `2` \"?\"");
  EXPECT_EQ(read("\"n_shared_experts\": 1001, \"moe_intermediate_size\": 128"), "EX004 `1001` \"?\"");
  EXPECT_EQ(read("\"n_shared_experts\": -1, \"moe_intermediate_size\": 128"), "EX004 `-1` \"?\"");
  EXPECT_EQ(read("\"n_shared_experts\": [2], \"moe_intermediate_size\": 128"), "EX004 `[2]` \"?\"");
}

}  // namespace
}  // namespace capstan
