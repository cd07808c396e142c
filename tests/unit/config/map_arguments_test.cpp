#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/launcher_text.h"
#include "tests/unit/config/read_fixture.h"

namespace capstan {
namespace {

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

TEST(MapArguments, ListsThatNeedAValueAndTheirWords) {
  const char* release = "megatron-lm-0.17";
  for (const char* flag : {"--cuda-graph-scope", "--cp-comm-type", "--moe-aux-loss-coeff",
                           "--moe-router-load-balancing-type", "--profile-ranks"}) {
    const Read empty("a.args", std::string("--num-layers 2 ") + flag + "\n", release);
    EXPECT_EQ(empty.findings(), std::string("EX003 `") + flag + "` ") << flag;
  }
  // `nargs="*"`
  EXPECT_EQ(Read("a.args", "--num-layers 2 --high-priority-stream-groups\n", release).findings(), "");
  EXPECT_EQ(Read("a.args", "--num-layers 2 --cuda-graph-scope attn foo\n", release).findings(),
            "EX002 `foo` ");
  EXPECT_EQ(Read("a.args", "--num-layers 2 --cuda-graph-scope attn full\n", release).findings(), "");
  const char* inference = "--num-layers 2 --cuda-graph-scope full_iteration_inference\n";
  EXPECT_EQ(Read("a.args", inference, "megatron-lm-0.16").findings(), "EX002 `full_iteration_inference` ");
  EXPECT_EQ(Read("a.args", inference, release).findings(), "");
  const char* quantile = "--num-layers 2 --moe-router-load-balancing-type quantile_balancing\n";
  EXPECT_EQ(Read("a.args", quantile, "megatron-lm-0.18").findings(), "EX002 `quantile_balancing` ");
  EXPECT_EQ(Read("a.args", quantile, "megatron-lm-0.19").findings(), "");
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

TEST(MapArguments, SwitchesThatTheFrameworkAppliesAfterParsingWinWhereverTheyStand) {
  for (const char* text : {"--num-layers 4 --recompute-granularity full --recompute-activations "
                           "--position-embedding-type mrope --use-rotary-position-embeddings "
                           "--quick-geglu --swiglu\n",
                           "--num-layers 4 --swiglu --quick-geglu --use-rotary-position-embeddings "
                           "--position-embedding-type mrope --recompute-activations "
                           "--recompute-granularity full\n"}) {
    const Read read("a.args", text, "megatron-lm-0.19");
    ASSERT_TRUE(read.good);
    EXPECT_EQ(read.value("model.recompute_granularity"), "\"selective\"");
    EXPECT_EQ(read.value("model.position_embedding_type"), "\"rope\"");
    EXPECT_EQ(read.value("model.activation_func"), "\"F.silu\"");
    EXPECT_EQ(read.value("arguments.quick_geglu"), "true");
  }
  // Under a condition it may win, so nothing is known.
  const Read open("a.sh",
                  "A=(--num-layers 4)\nif x; then A+=(--recompute-activations); fi\n"
                  "python train.py ${A[@]} --recompute-granularity full\n",
                  "megatron-lm-0.19");
  EXPECT_EQ(open.value("model.recompute_granularity"), "\"?\"");
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

}  // namespace
}  // namespace capstan
