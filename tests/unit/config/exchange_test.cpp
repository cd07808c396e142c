#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/effective.h"
#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/launcher_text.h"
#include "compiler/config/exchange/read_config.h"
#include "compiler/config/exchange/shell_quoted.h"
#include "compiler/config/exchange/write_config.h"

namespace capstan {
namespace {

const Stack& stack_of(const char* name) {
  const Stack* stack = builtin_schema().find_stack(name);
  if (stack == nullptr) throw std::out_of_range(name);
  return *stack;
}

/// Views are made once: a test reads thousands of texts.
const SchemaView& view_of(const std::string& stack) {
  static std::map<std::string, std::unique_ptr<SchemaView>> views;
  std::unique_ptr<SchemaView>& view = views[stack];
  if (!view) view = std::make_unique<SchemaView>(builtin_schema(), stack_of(stack.c_str()));
  return *view;
}

/// How many random configs the round trips take; CAPSTAN_ROUND_TRIPS asks for more.
int round_trips() {
  const char* text = std::getenv("CAPSTAN_ROUND_TRIPS");
  return text == nullptr ? 60 : std::max(1, std::atoi(text));
}

struct Read {
  SourceMap sources;
  Sink sink;
  ReadRecord record;
  ConfigFormat format;
  const SchemaView& view;
  Config config;
  bool good = false;

  Read(std::string name, std::string text, const char* stack, std::optional<ConfigFormat> forced = {})
      : view(view_of(stack)) {
    const SourceId id = sources.add(std::move(name), std::move(text), SourceKind::file);
    format = forced ? *forced : detect_format(sources[id].name(), sources[id].bytes());
    const auto layers = read_config(id, format, view, sources, disk_reader(), sink, record);
    good = layers.has_value();
    if (layers) config = compose(*layers, sink);
  }
  std::string value(const char* path) const {
    const Setting* setting = config.find(path);
    return setting == nullptr ? "absent" : to_text(setting->value);
  }
  std::string place(const char* path) const {
    const Setting* setting = config.find(path);
    return setting == nullptr ? "absent"
                              : std::string(sources.text(setting->origin.key)) + "|" +
                                    std::string(sources.text(setting->origin.value));
  }
  std::string findings() const {
    std::string out;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      out += diagnostic.code + " `" +
             (diagnostic.labels.empty() ? "" : std::string(sources.text(diagnostic.labels[0].span))) + "` ";
    }
    return out;
  }
};

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

TEST(FlagTable, EveryKeyOfEveryFlagIsAKeyOfSomeRelease) {
  const FlagTable& table = builtin_flag_table();
  EXPECT_GT(table.flags.size(), 900u);
  for (const Flag& flag : table.flags) {
    for (const std::string& key : flag.keys)
      EXPECT_NE(builtin_schema().find(key), nullptr) << flag.name << " " << key;
    for (const auto& [key, value] : flag.sets)
      EXPECT_NE(builtin_schema().find(key), nullptr) << flag.name << " " << key;
  }
  for (const ImpliedSetting& implied : table.implied) {
    for (const auto& [key, value] : implied.sets) EXPECT_NE(builtin_schema().find(key), nullptr) << key;
    for (const std::string& flag : implied.when) EXPECT_NE(table.find(flag), nullptr) << flag;
    for (const std::string& flag : implied.unless) EXPECT_NE(table.find(flag), nullptr) << flag;
  }
}

TEST(FlagTable, RefusesMalformedData) {
  const auto refused = [](const char* text) {
    SourceMap sources;
    Sink sink;
    const SourceId id = sources.add("flags.toml", text, SourceKind::file);
    return !parse_flag_table(id, sources, sink) && sink.has_errors();
  };
  EXPECT_TRUE(refused("[flags]\n\"--x\" = { keys = [\"model.a\"] }"));  // no `takes`
  EXPECT_TRUE(refused("[flags]\n\"--x\" = { takes = \"int\" }"));       // neither key nor reason
  EXPECT_TRUE(refused("[flags]\n\"--x\" = { takes = \"word\", keys = [\"model.a\"] }"));
  EXPECT_TRUE(refused("[flags]\n\"--x\" = { takes = \"int\", keys = [\"model.a\"], since = \"new\" }"));
  EXPECT_TRUE(refused(
      "[flags]\n\"--x\" = { takes = \"str\", keys = [\"model.a\"], choices = [{ until = \"0.16\" }] }"));
  EXPECT_TRUE(refused("[[implied]]\nset = { a = 1 }"));
  EXPECT_FALSE(refused("[flags]\n\"--x\" = { takes = \"int\", keys = [\"model.a\"], since = \"0.16\" }"));
}

TEST(MapArguments, TranslatesSwitchesValuesAndTheirPlaces) {
  const Read read("a.args",
                  "--num-layers 4 --disable-bias-linear --untie-embeddings-and-output-weights --swiglu "
                  "--bf16 --num-experts 8\n"
                  "--no-check-for-nan-in-loss-and-grad --seq-length 128 --lr 1e-4 --cp-comm-type p2p "
                  "--recompute-modules moe mlp\n",
                  "megatron-lm-0.19");
  ASSERT_TRUE(read.good);
  EXPECT_EQ(read.findings(), "");
  EXPECT_EQ(read.value("model.num_layers"), "4");
  EXPECT_EQ(read.place("model.num_layers"), "--num-layers|4");
  EXPECT_EQ(read.value("model.add_bias_linear"), "false");
  EXPECT_EQ(read.place("model.add_bias_linear"), "--disable-bias-linear|--disable-bias-linear");
  EXPECT_EQ(read.value("arguments.untie_embeddings_and_output_weights"), "true");
  EXPECT_EQ(read.value("model.gated_linear_unit"), "true");
  EXPECT_EQ(read.value("model.activation_func"), "\"F.silu\"");
  EXPECT_EQ(read.value("model.num_moe_experts"), "8");
  EXPECT_EQ(read.value("model.bf16"), "true");
  EXPECT_EQ(read.value("rerun_state_machine.check_for_nan_in_loss"), "false");
  EXPECT_EQ(read.value("ddp.check_for_nan_in_grad"), "false");
  EXPECT_EQ(read.value("dataset.seq_length"), "128");
  EXPECT_EQ(read.value("optimizer.lr"), "0.0001");
  EXPECT_EQ(read.value("model.cp_comm_type"), "\"p2p\"");
  EXPECT_EQ(read.value("model.recompute_modules"), "[\"moe\", \"mlp\"]");
  EXPECT_EQ(read.record.total, read.record.mapped);
}

TEST(MapArguments, AddsWhatMegatronLmImplies) {
  const Read plain("a.args", "--num-layers 4\n", "megatron-lm-0.19");
  EXPECT_EQ(plain.value("model.bias_activation_fusion"), "true");
  EXPECT_EQ(plain.value("model.overlap_p2p_comm"), "false");
  EXPECT_EQ(plain.value("model.num_query_groups"), "none");
  EXPECT_EQ(plain.value("ddp.check_for_nan_in_grad"), "true");
  EXPECT_EQ(plain.value("ddp.grad_reduce_in_fp32"), "absent");
  EXPECT_EQ(plain.value("target.frontend"), "\"megatron-lm\"");
  const Read other("a.args", "--no-bias-gelu-fusion --group-query-attention --num-query-groups 2 --bf16\n",
                   "megatron-lm-0.19");
  EXPECT_EQ(other.value("model.bias_activation_fusion"), "absent");
  EXPECT_EQ(other.value("model.num_query_groups"), "2");
  EXPECT_EQ(other.value("ddp.grad_reduce_in_fp32"), "true");
  // 16 layers on 4 ranks, 2 layers a stage: 2 virtual stages.
  const Read stages(
      "a.args",
      "--num-layers 16 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 2\n",
      "megatron-lm-0.19");
  EXPECT_EQ(stages.value("model.virtual_pipeline_model_parallel_size"), "2");
  EXPECT_EQ(stages.value("model.overlap_p2p_comm"), "true");
  // Et*3 | (tt|) six times, tmL: 1 + 6 bars, 8 stages on 2 ranks.
  const Read layout("a.args",
                    "--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*6tmL'\n",
                    "megatron-lm-0.19");
  EXPECT_EQ(layout.value("model.virtual_pipeline_model_parallel_size"), "4");
  // A layout that the framework cannot read implies nothing: a letter that no layer has, a group without a
  // factor.
  for (const char* unreadable : {"Ex|tL", "E(t|)tL"}) {
    const Read refused("a.args", std::string("--pipeline-model-parallel-layout '") + unreadable + "'\n",
                       "megatron-lm-0.19");
    EXPECT_EQ(refused.value("model.virtual_pipeline_model_parallel_size"), "absent") << unreadable;
  }
  // The checkpoint decides the shape: open, unless the arguments say it.
  const Read checkpoint("a.args", "--use-checkpoint-args --num-layers 2\n", "megatron-lm-0.19");
  EXPECT_EQ(checkpoint.value("model.num_moe_experts"), "\"?\"");
  EXPECT_EQ(checkpoint.value("model.num_layers"), "2");
}

TEST(MapArguments, TakesBackWhatTheFrontEndDrops) {
  // core_transformer_config_from_args: num_query_groups counts with group_query_attention only.
  const Read alone("a.args", "--num-layers 2 --num-query-groups 2\n", "megatron-lm-0.19");
  EXPECT_EQ(alone.value("model.num_query_groups"), "none");
  EXPECT_EQ(alone.findings(), "EX001 `--num-query-groups` ");
  const Read both("a.args", "--num-query-groups 2 --group-query-attention\n", "megatron-lm-0.19");
  EXPECT_EQ(both.value("model.num_query_groups"), "2");
  EXPECT_EQ(both.findings(), "");
  // Where it may come with what is not known here, the value counts.
  const Read open("a.sh", "python train.py --num-query-groups 2 $EXTRA\n", "megatron-lm-0.19");
  EXPECT_EQ(open.value("model.num_query_groups"), "2");
}

// megatron/training/arguments.py: `type=str, choices=[...]` in 0.14 and 0.15, `nargs="+"` from 0.16 on.
TEST(MapArguments, TakesOneScopeOrSeveralAsTheReleaseDoes) {
  const Read older("a.args", "--cuda-graph-scope attn\n", "megatron-lm-0.15");
  EXPECT_EQ(older.value("model.cuda_graph_scope"), "\"attn\"");
  const Read several("a.args", "--cuda-graph-scope attn full\n", "megatron-lm-0.15");
  EXPECT_EQ(several.findings(), "EX002 `full` ");
  const Read newer("a.args", "--cuda-graph-scope attn\n", "megatron-lm-0.16");
  EXPECT_EQ(newer.value("model.cuda_graph_scope"), "[\"attn\"]");
}

// megatron/training/arguments.py: `choices=['adam', 'sgd']` in 0.15, `dist_muon` among them from 0.16 on.
TEST(MapArguments, RefusesWordsThatTheParserRefuses) {
  const Read older("a.args", "--optimizer dist_muon\n", "megatron-lm-0.15");
  EXPECT_EQ(older.findings(), "EX002 `dist_muon` ");
  EXPECT_EQ(older.value("optimizer.optimizer"), "\"?\"");
  const Read newer("a.args", "--optimizer dist_muon\n", "megatron-lm-0.16");
  EXPECT_EQ(newer.findings(), "");
  const Read wrong("a.args", "--optimizer foo\n", "megatron-lm-head");
  EXPECT_EQ(wrong.findings(), "EX002 `foo` ");
}

TEST(MapArguments, ReportsWhatItCannotUse) {
  const Read read("a.args", "--num-layer 4 --num-layers x --swiglu yes --hidden-size --seed 1 2 --lr $LR\n",
                  "megatron-lm-0.19");
  ASSERT_TRUE(read.good);
  EXPECT_EQ(read.findings(),
            "EX001 `--num-layer` EX002 `x` EX002 `yes` EX003 `--hidden-size` EX002 `2` EX004 `$LR` ");
  EXPECT_EQ(read.value("optimizer.lr"), "\"?\"");  // open: rules that read it stay silent
  EXPECT_EQ(read.record.unknown.size(), 1u);
  EXPECT_EQ(read.record.not_literal.size(), 1u);
}

TEST(MapArguments, WordsThatMayHoldArgumentsLeaveKeysOpen) {
  for (const char* const word :
       {"\"$@\"", "$EXTRA", "${EXTRA[@]}", "--swiglu $EXTRA", "--lr 1e-4 $EXTRA", "--data-path $BLEND \"$@\"",
        "--data-path 1 $A \"$@\"", "--data-path 1 $A $EXTRA", "--$NAME 3", "--swiglu @more"}) {
    const Read read("a.sh", "python pretrain_gpt.py --bf16 --num-layers 4 " + std::string(word) + "\n",
                    "megatron-lm-0.19");
    ASSERT_TRUE(read.good) << word;
    EXPECT_TRUE(read.record.unset_is_open) << word;
    EXPECT_EQ(read.value("model.num_layers"), "4") << word;
    // What holds only without some argument is not known.
    EXPECT_EQ(read.value("model.cp_comm_type"), "\"?\"") << word;
    EXPECT_EQ(read.value("ddp.grad_reduce_in_fp32"), "\"?\"") << word;
    EXPECT_EQ(read.value("model.deallocate_pipeline_outputs"), "true") << word;
  }
  for (const char* const word : {"", "--lr $LR", "--data-path $BLEND", "--data-path a/$X b",
                                 "--data-path 0.3 $A 0.7 $B", "${EXTRA:-}"}) {
    const Read read("a.sh", "python $SCRIPT --bf16 --num-layers 4 " + std::string(word) + "\n",
                    "megatron-lm-0.19");
    EXPECT_FALSE(read.record.unset_is_open) << word;
    EXPECT_EQ(read.value("model.cp_comm_type"), "\"p2p\"") << word;
  }
}

TEST(MapArguments, AnArgumentUnderAConditionImpliesNothingForSure) {
  const Read read("a.sh",
                  "A=(--num-layers 4)\nif x; then A+=(--swiglu --bf16); fi\npython train.py ${A[@]}\n",
                  "megatron-lm-0.19");
  EXPECT_EQ(read.value("model.bias_activation_fusion"), "\"?\"");
  EXPECT_EQ(read.value("ddp.grad_reduce_in_fp32"), "\"?\"");
  EXPECT_EQ(read.value("model.cp_comm_type"), "\"p2p\"");
  EXPECT_FALSE(read.record.unset_is_open);
}

TEST(FunctionalTest, FollowsTheLaunchersRules) {
  const Read read(
      "m.yaml",
      "ENV_VARS:\n  NCCL_ALGO: Ring\n  X: 1\nMODEL_ARGS:\n  --num-layers: 24\n  --bf16: true\n  --lr: 1e-4\n"
      "  --recompute-modules: [moe mlp]\n  --rampup-batch-size: \"[2 4 8]\"\n  --save: ${SAVE_PATH}/x\n  "
      "--seed: ${REPEAT}\n  --finetune: \"\"\nTEST_TYPE: regular\n",
      "megatron-lm-0.19");
  ASSERT_TRUE(read.good);
  EXPECT_EQ(read.format, ConfigFormat::functional_test);
  EXPECT_EQ(read.findings(), "EX004 `${REPEAT}` ");
  EXPECT_EQ(read.value("model.num_layers"), "24");
  EXPECT_EQ(read.place("model.num_layers"), "--num-layers|24");
  EXPECT_EQ(read.value("optimizer.lr"), "0.0001");
  EXPECT_EQ(read.value("model.recompute_modules"), "[\"moe\", \"mlp\"]");
  EXPECT_EQ(read.value("train.rampup_batch_size"), "[2, 4, 8]");
  EXPECT_EQ(read.value("checkpoint.save"), "\"${SAVE_PATH}/x\"");
  EXPECT_EQ(read.value("env.NCCL_ALGO"), "\"Ring\"");
  EXPECT_EQ(read.value("env.X"), "\"1\"");
  ASSERT_EQ(read.record.irrelevant.size(), 1u);
  EXPECT_EQ(read.record.irrelevant[0].name, "TEST_TYPE");
  EXPECT_EQ(Read("m.yaml", "MODEL_ARGS: 3\n", "megatron-lm-0.19").findings(), "EX005 `3` ");
  EXPECT_EQ(Read("m.yaml", "MODEL_ARGS:\n  --num-layers: 2\n  --num-layers: 4\n", "megatron-lm-0.19")
                .value("model.num_layers"),
            "4");
  EXPECT_EQ(Read("m.yaml", "MODEL_ARGS:\n\t--num-layers: 2\n", "megatron-lm-0.19").findings(), "SY007 `\t` ");
}

TEST(FunctionalTest, ValuesPassThroughTheLaunchersShell) {
  // Of releases up to 0.16: xargs takes one backslash of each pair, eval the other.
  EXPECT_EQ(launched_text("Et*2\\\\|\\\\(tt\\\\|\\\\)*5t\\\\|tmL", false), "Et*2|(tt|)*5t|tmL");
  EXPECT_EQ(launched_text("a\\\\|b", true), "a\\|b");  // kept between double quotes
  EXPECT_EQ(launched_text("a\\|b", true), "a|b");
  EXPECT_EQ(launched_text("(a\\\\b)", false), "(a\\b)");
  EXPECT_EQ(launched_text("'a  b'  c", false), "a  b c");
  EXPECT_EQ(launched_text("\"a\\b\"", false), "ab");
  EXPECT_EQ(launched_text("it's", false), std::nullopt);
  EXPECT_EQ(launched_text("\\$x", false), std::nullopt);
  EXPECT_EQ(launched_text("", false), "");
  const char* const yaml =
      "MODEL_ARGS:\n  --pipeline-model-parallel-layout: Et\\\\|\\\\(tt\\\\|\\\\)*6mL # x\n";
  EXPECT_EQ(Read("t.yaml", yaml, "megatron-lm-0.16").value("model.pipeline_model_parallel_layout"),
            "\"Et|(tt|)*6mL\"");
}

TEST(BatchScript, GivesTheClusterToo) {
  const Read read("job.sh",
                  "#!/bin/bash\n#SBATCH --nodes=4\n#SBATCH --gres=gpu:8\nexport NCCL_DEBUG=WARN\nsrun python "
                  "pretrain_gpt.py --num-layers 2 # x\n",
                  "megatron-lm-0.19");
  ASSERT_TRUE(read.good) << read.findings();
  EXPECT_EQ(read.value("cluster.nodes"), "4");
  EXPECT_EQ(read.value("cluster.gpus_per_node"), "8");
  EXPECT_EQ(read.value("env.NCCL_DEBUG"), "\"WARN\"");
  EXPECT_EQ(read.value("model.num_layers"), "2");
  EXPECT_EQ(read.record.comments.size(), 4u);
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

TEST(ShellQuoted, KeepsEveryCharacter) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b$X`c`\\"), "'a b$X`c`\\'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(MapArguments, PatternsOverTheLayersAreLists) {
  EXPECT_EQ(Read("m.yaml", "MODEL_ARGS:\n  --moe-layer-freq: ([0]*1+[1]*3)\n", "megatron-lm-0.19")
                .value("model.moe_layer_freq"),
            "[0, 1, 1, 1]");
  EXPECT_EQ(Read("a.args", "--moe-layer-freq '([0]*1+[1]*3)' --linear-attention-freq 4\n", "megatron-lm-0.19")
                .value("model.moe_layer_freq"),
            "[0, 1, 1, 1]");
  for (const char* window : {"128,0", "'(128,0)'"}) {
    EXPECT_EQ(Read("a.args", std::string("--window-size ") + window + " --bf16\n", "megatron-lm-0.19")
                  .value("model.window_size"),
              "[128, 0]");
  }
  // The framework takes no blanks in it.
  EXPECT_EQ(Read("a.args", "--moe-layer-freq '[0] * 2'\n", "megatron-lm-0.19").value("model.moe_layer_freq"),
            "\"[0] * 2\"");
}

TEST(WriteArguments, SaysKeysThatBearTheNameOfAnArgument) {
  const auto written = [](const std::string& toml) {
    const Read read("a.toml", toml, "megatron-lm-0.19");
    const WrittenConfig out = write_config(read.config, read.view, ExportFormat::megatron_args);
    std::string text = out.text;
    for (const WrittenConfig::LeftOut& left : out.left_out) {
      if (left.kind == WrittenConfig::LeftOut::Kind::lost) text += "lost " + left.path + "\n";
    }
    return text;
  };
  const std::string plain = written("");  // what keeps Megatron-LM's own choices away
  const auto has = [&](const std::string& toml, const std::string& line) {
    return ("\n" + written(toml)).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("[model]\nswiglu = true\n", "--swiglu"));
  EXPECT_TRUE(has("[model]\nnum_experts = 4\n", "--num-experts 4"));
  EXPECT_TRUE(has("[model]\ndisable_bias_linear = true\n", "--disable-bias-linear"));
  EXPECT_TRUE(has("[arguments]\nddp_bucket_size = 7\n", "--ddp-bucket-size 7"));
  EXPECT_EQ(written("[model]\nswiglu = false\n"), plain);
  // At odds with what the argument sets: listed, not said.
  EXPECT_TRUE(has("[model]\nswiglu = true\nactivation_func = \"quick_gelu\"\n", "lost model.swiglu"));
  EXPECT_TRUE(has("[model]\nmoe_layer_freq = [0, 0, 1]\n", "--moe-layer-freq '([0]*2+[1]*1)'"));
  EXPECT_TRUE(has("[model]\nwindow_size = [128, -1]\n", "--window-size '(128,-1)'"));
}

TEST(WriteConfig, LeavesOutKeysThatPythonCannotName) {
  Config config;
  const std::string path = "optimizer_config_override_provider.a-b";
  config.settings[path] = {path, Value(1), {}, {}, {}, {}};
  const WrittenConfig written = write_config(config, view_of("bridge-0.6"), ExportFormat::python);
  EXPECT_EQ(written.text, "");
  ASSERT_EQ(written.left_out.size(), 1u);
  EXPECT_EQ(written.left_out[0].path, path);
}

TEST(WriteConfig, LeavesOutBytesThatAreNoText) {
  Config config;
  config.settings["checkpoint.save"] = {"checkpoint.save", Value("caf\xE9"), {}, {}, {}, {}};
  for (const ExportFormat format :
       {ExportFormat::toml, ExportFormat::bridge_yaml, ExportFormat::python, ExportFormat::hydra}) {
    const WrittenConfig written = write_config(config, view_of("bridge-0.6"), format);
    EXPECT_EQ(written.text.find('\xE9'), std::string::npos);
    ASSERT_EQ(written.left_out.size(), 1u);
    EXPECT_EQ(written.left_out[0].path, "checkpoint.save");
  }
}

TEST(WriteConfig, ListsWhatOnlyCapstanReads) {
  const Read read("a.toml",
                  "[target]\nstack = \"bridge-0.4\"\ngpu = \"h100\"\n[cluster]\nnodes = 2\n[model]\n"
                  "num_layers = 2\n",
                  "bridge-0.4");
  std::string lost;
  for (const auto& left : write_config(read.config, read.view, ExportFormat::hydra).left_out)
    lost += left.path + ";";
  EXPECT_EQ(lost, "cluster.nodes;target.gpu;target.stack;");
}

// --- round trips ---

class RandomSettings {
 public:
  explicit RandomSettings(const SchemaView& view) : view_(view) {
    for (const KeyInfo& key : view.schema().keys()) {
      const std::string section(section_of(key.path));
      if (section == "target" || section == "cluster" || section == "execute" ||
          section == kEnvironmentSection)
        continue;
      if (!key.renamed_to.empty()) continue;  // comes back under its new name
      if (view.find(key.path).spec != nullptr && key.path.find('.') != std::string::npos)
        paths_.push_back(key.path.ends_with(".*") ? key.path.substr(0, key.path.size() - 1) + "field"
                                                  : key.path);
    }
  }

  Config next(std::mt19937& random) const {
    Config config;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& path = paths_[random() % paths_.size()];
      Setting setting;
      setting.path = path;
      setting.value = value_for(*view_.find(path).spec, random);
      config.settings[path] = setting;
    }
    if (random() % 2 == 0) {
      Setting setting;
      setting.path = "env.NCCL_TEST";
      setting.value = Value(text(random));
      config.settings[setting.path] = setting;
    }
    return config;
  }

 private:
  static std::string text(std::mt19937& random) {
    static const std::vector<std::string> pieces = {"a", "Z",  "0",    " ",    "'", "\"",   "\\", "#",
                                                    ":", ",",  "=",    "[",    "}", "${X}", "--", "\xC3\xA9",
                                                    "$", "-1", "true", "null", "%", "\t"};
    std::string out;
    for (std::size_t i = random() % 6; i > 0; --i) out += pieces[random() % pieces.size()];
    return out;
  }
  static std::int64_t integer(std::mt19937& random) {
    return static_cast<std::int64_t>(random() % 2000) - 1000;
  }
  static double floating(std::mt19937& random) {
    return static_cast<double>(random()) / 1e7 * (random() % 2 == 0 ? 1 : 1e-12);
  }

  static Value value_for(const KeySpec& spec, std::mt19937& random) {
    std::vector<Value> options;
    const TypeSet& type = spec.type;
    if (type.boolean) options.emplace_back(random() % 2 == 0);
    if (type.integer) options.emplace_back(integer(random));
    if (type.floating) options.emplace_back(floating(random));
    if (type.string && spec.values.empty()) options.emplace_back(text(random));
    if (!spec.values.empty()) options.emplace_back(spec.values[random() % spec.values.size()]);
    if (type.list && (type.list_integer || type.list_any))
      options.emplace_back(Value::List{Value(integer(random)), Value(integer(random))});
    if (type.list && type.list_string) {
      options.emplace_back(
          Value::List{Value(spec.values.empty() ? text(random) : spec.values[0]), Value("x")});
    }
    if (type.none || options.empty()) options.emplace_back();
    return options[random() % options.size()];
  }

  const SchemaView& view_;
  std::vector<std::string> paths_;
};

std::map<std::string, std::string> settings_of(const Config& config) {
  std::map<std::string, std::string> out;
  for (const auto& [path, setting] : config.settings) {
    if (section_of(path) != "target") out[path] = to_text(setting.value);
  }
  return out;
}

TEST(RoundTrip, RandomConfigsSurviveEveryFormat) {
  const SchemaView& view = view_of("bridge-0.4");
  const RandomSettings configs(view);
  std::mt19937 random(20261129);
  const std::vector<std::pair<ExportFormat, ConfigFormat>> formats = {
      {ExportFormat::toml, ConfigFormat::toml},
      {ExportFormat::bridge_yaml, ConfigFormat::bridge_yaml},
      {ExportFormat::python, ConfigFormat::python},
      {ExportFormat::hydra, ConfigFormat::hydra}};
  for (int i = 0; i < round_trips(); ++i) {
    const Config config = configs.next(random);
    for (const auto& [to, from] : formats) {
      const WrittenConfig written = write_config(config, view, to);
      auto expected = settings_of(config);
      for (const WrittenConfig::LeftOut& left : written.left_out) expected.erase(left.path);
      // TOML says none as the word "none", or not at all where it is the default; binding reads it so.
      if (to == ExportFormat::toml)
        std::erase_if(expected, [](const auto& entry) { return entry.second == "none"; });
      if (expected.empty()) continue;
      const Read back("x", written.text, "bridge-0.4", from);
      ASSERT_TRUE(back.good) << export_format_name(to) << "\n" << written.text << back.findings();
      auto found = settings_of(back.config);
      if (to == ExportFormat::toml) {
        std::erase_if(found, [&](const auto& entry) {
          return entry.second == "\"none\"" && !expected.contains(entry.first);
        });
      }
      ASSERT_EQ(found, expected) << export_format_name(to) << "\n" << written.text;
    }
  }
}

TEST(RoundTrip, RandomConfigsSurviveArguments) {
  const SchemaView& view = view_of("megatron-lm-0.19");
  const RandomSettings configs(view);
  std::mt19937 random(20261130);
  std::size_t said = 0, left = 0;
  for (int i = 0; i < round_trips(); ++i) {
    Config config = configs.next(random);
    config.settings.erase("env.NCCL_TEST");
    const WrittenConfig written = write_config(config, view, ExportFormat::megatron_args);
    if (written.text.empty()) continue;
    const Read back("x.args", written.text, "megatron-lm-0.19", ConfigFormat::megatron_args);
    ASSERT_TRUE(back.good) << written.text << back.findings();
    ASSERT_EQ(back.findings(), "") << written.text;
    std::set<std::string> excused;
    for (const WrittenConfig::LeftOut& entry : written.left_out) excused.insert(entry.path);
    left += excused.size();
    // Every key that is not listed as left out has the same effective value on both sides.
    const auto before = effective_config(config, view), after = effective_config(back.config, view);
    for (const EffectiveDifference& difference : compare(before, after)) {
      ASSERT_TRUE(excused.contains(difference.path))
          << difference.path << ": "
          << (difference.before == nullptr ? "absent" : to_text(difference.before->value)) << " -> "
          << (difference.after == nullptr ? "absent" : to_text(difference.after->value)) << "\n"
          << written.text;
    }
    said += config.settings.size();
  }
  EXPECT_GT(said, left);
}

TEST(EffectiveConfig, DigestFollowsValuesOnly) {
  const SchemaView& view = view_of("bridge-0.4");
  const auto digest = [&](std::string text) {
    SourceMap sources;
    Sink sink;
    const SourceId id = sources.add("a.toml", std::move(text), SourceKind::file);
    auto layers = load_layers(id, sources, disk_reader(), sink);
    return effective_digest(effective_config(compose(*layers, sink), view));
  };
  EXPECT_EQ(digest("[model]\nnum_layers = 4\n"), digest("# c\n[model]\n\n  num_layers = 4 # x\n"));
  EXPECT_EQ(digest("[model]\nhidden_dropout = 1\n"), digest("[model]\nhidden_dropout = 1.0\n"));
  EXPECT_EQ(digest(""), digest("[model]\nhidden_dropout = 0.1\n"));  // the default
  EXPECT_NE(digest(""), digest("[model]\nhidden_dropout = 0.2\n"));
  EXPECT_EQ(digest(""), digest("[execute]\nsteps = 5\n"));
}

}  // namespace
}  // namespace capstan
