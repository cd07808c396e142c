#include "compiler/plan/bind_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "compiler/plan/compile.h"
#include "tests/support/bound_config.h"

namespace capstan::plan {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

struct Bound {
  std::optional<ModelSpec> spec;
  std::vector<Diagnostic> diagnostics;

  /// "CODE key" of each error, in order.
  std::vector<std::string> errors() const {
    std::vector<std::string> texts;
    for (const Diagnostic& d : diagnostics) {
      if (d.severity == Severity::error) texts.push_back(d.code + " " + d.keys.at(0));
    }
    return texts;
  }
};

Bound bind_spec(const std::string& text, const std::string& stack = "bridge-0.4",
                const std::string& name = "test.toml") {
  const auto bound = bind_text(text, stack, name);
  EXPECT_THAT(bound->sink.diagnostics(), IsEmpty()) << bound->sink.diagnostics()[0].message;
  Sink sink;
  Bound result;
  result.spec =
      bind_model({bound->config, *bound->schema, nullptr, name, "capstan test", &bound->sources}, sink);
  result.diagnostics = sink.take();
  return result;
}

const std::string kSmall = R"(
[model]
num_layers = 4
hidden_size = 64
num_attention_heads = 4
vocab_size = 1000
seq_length = 32
[train]
micro_batch_size = 2
global_batch_size = 8
train_iters = 100
[optimizer]
lr = 1e-3
)";

ModelSpec good(const std::string& text, const std::string& stack = "bridge-0.4") {
  Bound bound = bind_spec(text, stack);
  EXPECT_THAT(bound.errors(), IsEmpty());
  return bound.spec.value_or(ModelSpec{});
}

TEST(BindModel, TheSchedulersWeightDecayTakesThePlaceOfTheOptimizers) {
  EXPECT_DOUBLE_EQ(
      good(kSmall + "weight_decay = 0.3\n[scheduler]\nstart_weight_decay = 0.1\nend_weight_decay = 0.1\n")
          .optimizer.weight_decay,
      0.1);
  // Equal ends do not change, whatever the style says of the way between them.
  const std::string linear = "[scheduler]\nweight_decay_incr_style = \"linear\"\nstart_weight_decay = 0.1\n";
  EXPECT_DOUBLE_EQ(good(kSmall + linear + "end_weight_decay = 0.1\n").optimizer.weight_decay, 0.1);
  EXPECT_THAT(bind_spec(kSmall + linear + "end_weight_decay = 0.2\n").errors(),
              ElementsAre("LW001 scheduler.weight_decay_incr_style"));
  const Bound constant =
      bind_spec(kSmall + "[scheduler]\nstart_weight_decay = 0.1\nend_weight_decay = 0.2\n");
  ASSERT_THAT(constant.errors(), ElementsAre("LW003 scheduler.end_weight_decay"));
  EXPECT_THAT(constant.diagnostics.front().message, HasSubstr("starts at 0.1 and ends at 0.2"));
  // An optimizer's own value that is passed over is told.
  const Bound both = bind_spec(kSmall + "weight_decay = 0.3\n[scheduler]\nend_weight_decay = 0.1\n");
  ASSERT_EQ(both.diagnostics.size(), 1u);
  EXPECT_EQ(both.diagnostics.front().code, "LW007");
  EXPECT_THAT(both.diagnostics.front().message, HasSubstr("`optimizer.weight_decay = 0.3` has no effect"));
}

TEST(BindModel, SamplesThatMakeNoStepAreSaidSo) {
  std::string text = kSmall;
  text.replace(text.find("train_iters = 100"), 17, "train_samples = 7");
  const Bound bound = bind_spec(text);
  ASSERT_THAT(bound.errors(), ElementsAre("LW003 train.train_samples"));
  EXPECT_THAT(bound.diagnostics.front().message, HasSubstr("less than a global batch of 8 sequences"));
  text.replace(text.find("train_samples = 7"), 17, "train_samples = 0");
  EXPECT_THAT(bind_spec(text).errors(), ElementsAre("LW003 train.train_samples"));
}

TEST(BindModel, DefaultsAreTheFrameworks) {
  const ModelSpec spec = good(kSmall);
  EXPECT_EQ(spec.dims.layers, 4);
  EXPECT_EQ(spec.dims.kv_heads, 4);
  EXPECT_EQ(spec.dims.head_dim, 16);
  EXPECT_EQ(spec.dims.ffn_hidden, 256);
  EXPECT_EQ(spec.dims.padded_vocab, 1000);  // should_pad_vocab is off in Bridge
  EXPECT_EQ(spec.dims.micro_batches, 4);
  EXPECT_EQ(spec.normalization, Normalization::layer_norm);
  EXPECT_EQ(spec.activation, Activation::gelu);
  EXPECT_EQ(spec.positions, Positions::learned);
  EXPECT_TRUE(spec.linear_bias && spec.qkv_bias && spec.tied_head);
  EXPECT_DOUBLE_EQ(spec.hidden_dropout, 0.1);
  EXPECT_DOUBLE_EQ(spec.attention_dropout, 0.1);
  EXPECT_DOUBLE_EQ(spec.init_std, 0.02);
  EXPECT_DOUBLE_EQ(spec.output_init_std, 0.02 / std::sqrt(8.0));
  EXPECT_EQ(spec.param_dtype, DType::f32);
  EXPECT_FALSE(spec.has_masters);
  EXPECT_DOUBLE_EQ(spec.optimizer.beta2, 0.999);
  EXPECT_DOUBLE_EQ(spec.optimizer.weight_decay, 0.01);
  EXPECT_DOUBLE_EQ(spec.optimizer.clip_grad, 1.0);
  EXPECT_EQ(spec.optimizer.decay_style, "linear");
  EXPECT_DOUBLE_EQ(spec.optimizer.decay_steps, 100);
  EXPECT_DOUBLE_EQ(spec.optimizer.sample_fraction, 1.0 / 8);
  EXPECT_EQ(spec.seed, 1234u);
  EXPECT_TRUE(spec.check_loss);
  EXPECT_FALSE(spec.check_gradients);
  EXPECT_EQ(spec.schedule.warmup_steps, 3);
  EXPECT_EQ(spec.data.kind, "none");
}

TEST(BindModel, ALlamaLikeModel) {
  const ModelSpec spec = good(kSmall + R"(
weight_decay = 0.1
[mixed_precision]
bf16 = true
)" + std::string("[scheduler]\nlr_decay_style = \"cosine\"\nlr_warmup_iters = 10\n"));
  EXPECT_EQ(spec.param_dtype, DType::bf16);
  EXPECT_TRUE(spec.has_masters);
  EXPECT_EQ(spec.grad_dtype, DType::f32);  // mixed_precision.grad_reduce_in_fp32 is on by default
  EXPECT_DOUBLE_EQ(spec.optimizer.warmup_steps, 10);
}

std::string with_model(const std::string& lines) {
  std::string text = kSmall;
  text.insert(text.find("[train]"), lines + "\n");
  return text;
}

TEST(BindModel, AnOptimizerOfAnotherPrecisionIsRefused) {
  const auto errors = [](const std::string& lines) { return bind_spec(kSmall + lines).errors(); };
  EXPECT_THAT(errors("bf16 = true\n"), ElementsAre("LW001 optimizer.bf16"));
  EXPECT_THAT(errors("bf16 = false\n[mixed_precision]\nbf16 = true\n"), ElementsAre());
}

TEST(BindModel, Fp8WithCurrentScaling) {
  const ModelSpec recipe =
      good(kSmall + "[mixed_precision]\nrecipe = \"bf16_with_fp8_current_scaling_mixed\"\n");
  EXPECT_EQ(recipe.param_dtype, DType::bf16);
  EXPECT_EQ(recipe.fp8, ModelSpec::Fp8::hybrid);
  EXPECT_EQ(recipe.wide_layers_at_start, 1);  // the recipe's own default
  EXPECT_EQ(recipe.wide_layers_at_end, 1);
  const ModelSpec stated = good(kSmall + R"([mixed_precision]
bf16 = true
fp8 = "e4m3"
fp8_recipe = "tensorwise"
first_last_layers_bf16 = true
num_layers_at_start_in_bf16 = 2
num_layers_at_end_in_bf16 = 0
)");
  EXPECT_EQ(stated.fp8, ModelSpec::Fp8::e4m3);
  EXPECT_EQ(stated.wide_layers_at_start, 2);
  EXPECT_EQ(stated.wide_layers_at_end, 0);
  EXPECT_EQ(good(kSmall + "[mixed_precision]\nbf16 = true\n").fp8, ModelSpec::Fp8::none);
  const auto refusal = [](const std::string& lines) {
    return bind_spec(kSmall + "[mixed_precision]\n" + lines).errors();
  };
  EXPECT_THAT(refusal("bf16 = true\nfp8 = \"hybrid\"\nfp8_recipe = \"delayed\"\n"),
              ElementsAre("LW001 mixed_precision.fp8_recipe"));
  EXPECT_THAT(refusal("bf16 = true\nfp8 = \"hybrid\"\nfp8_param = true\n"),
              ElementsAre("LW001 mixed_precision.fp8_param"));
  EXPECT_THAT(refusal("fp8 = \"hybrid\"\n"), ElementsAre("LW001 mixed_precision.fp8"));
  EXPECT_THAT(refusal("bf16 = true\nfp8 = \"e3m4\"\n"), ElementsAre("LW003 mixed_precision.fp8"));
}

TEST(BindModel, ParameterTypesThatThePlanDoesNotHaveAreRefused) {
  const auto with = [](const std::string& section, const std::string& type, bool bf16) {
    const std::string line = "params_dtype = \"" + type + "\"\n";
    std::string text = section == "model" ? with_model(line) : kSmall;
    if (section == "optimizer") text += line;
    if (bf16) text.insert(text.find("num_layers"), "bf16 = true\n");
    if (section == "mixed_precision") {
      text += "[mixed_precision]\n" + line + (bf16 ? "bf16 = true\n" : "");
    }
    return bind_spec(text);
  };
  for (const std::string section : {"model", "optimizer", "mixed_precision"}) {
    const auto refused = ElementsAre("LW001 " + section + ".params_dtype");
    for (const char* type : {"torch.float16", "torch.bfloat16", "torch.float64", "wide"})
      EXPECT_THAT(with(section, type, false).errors(), refused) << type;
    for (const char* type : {"torch.float16", "wide"})
      EXPECT_THAT(with(section, type, true).errors(), refused) << type;
    EXPECT_THAT(with(section, "torch.float32", false).errors(), IsEmpty()) << section;
    EXPECT_THAT(with(section, "torch.bfloat16", true).errors(), IsEmpty()) << section;
    const Bound bound = with(section, "torch.float16", false);
    EXPECT_TRUE(bound.diagnostics.at(0).labels.at(0).span.exists()) << section;
    EXPECT_THAT(bound.diagnostics.at(0).notes.at(0).text, HasSubstr("leave the key out"));
  }
}

TEST(BindModel, ThePrecisionSectionWinsOverTheModels) {
  const std::string section = R"([mixed_precision]
bf16 = true
fp8 = "hybrid"
fp8_recipe = "tensorwise"
first_last_layers_bf16 = true
num_layers_at_start_in_bf16 = 2
num_layers_at_end_in_bf16 = 0
)";
  const std::string same = R"(fp8 = "hybrid"
first_last_layers_bf16 = true
num_layers_at_start_in_bf16 = 2
)";
  const ModelSpec spec = good(with_model(same) + section);
  EXPECT_EQ(spec.fp8, ModelSpec::Fp8::hybrid);
  EXPECT_EQ(spec.wide_layers_at_start, 2);
  EXPECT_EQ(spec.wide_layers_at_end, 0);
  const Bound other = bind_spec(with_model("fp8 = \"e4m3\"\nnum_layers_at_end_in_bf16 = 3\n") + section);
  EXPECT_THAT(other.errors(), IsEmpty());
  ASSERT_TRUE(other.spec.has_value());
  EXPECT_EQ(other.spec->fp8, ModelSpec::Fp8::hybrid);
  EXPECT_EQ(other.spec->wide_layers_at_end, 0);
  // What the section overwrites with something else is told.
  ASSERT_EQ(other.diagnostics.size(), 1u);
  EXPECT_EQ(other.diagnostics[0].code, "LW007");
  EXPECT_THAT(other.diagnostics[0].message, HasSubstr("`model.fp8`"));
  EXPECT_THAT(other.diagnostics[0].message, HasSubstr("`model.num_layers_at_end_in_bf16`"));
}

TEST(BindModel, ArchitectureKeys) {
  const ModelSpec spec = good(with_model(R"(
num_query_groups = 2
kv_channels = 8
ffn_hidden_size = 96
normalization = "RMSNorm"
layernorm_epsilon = 1e-6
gated_linear_unit = true
activation_func = "silu"
add_bias_linear = false
add_qkv_bias = true
position_embedding_type = "rope"
rotary_base = 500000
rotary_percent = 0.5
rotary_interleaved = true
share_embeddings_and_output_weights = false
should_pad_vocab = true
hidden_dropout = 0.0
attention_dropout = 0.0
init_method_std = 0.01
)"));
  EXPECT_EQ(spec.dims.kv_heads, 2);
  EXPECT_EQ(spec.dims.head_dim, 8);
  EXPECT_EQ(spec.dims.padded_vocab, 1024);
  EXPECT_EQ(spec.normalization, Normalization::rms_norm);
  EXPECT_EQ(spec.activation, Activation::swiglu);
  EXPECT_EQ(spec.positions, Positions::rope);
  EXPECT_EQ(spec.rotary_dim, 4);
  EXPECT_TRUE(spec.rotary_interleaved);
  EXPECT_FALSE(spec.linear_bias);
  EXPECT_TRUE(spec.qkv_bias);
  EXPECT_FALSE(spec.tied_head);
  EXPECT_DOUBLE_EQ(spec.embedding_init_std, 0.01);
}

TEST(BindModel, FusedBiasGeluIsTheTanhForm) {
  EXPECT_EQ(good(with_model("bias_activation_fusion = true")).activation, Activation::gelu_tanh);
  EXPECT_EQ(good(with_model("bias_activation_fusion = true\nadd_bias_linear = false")).activation,
            Activation::gelu);
}

TEST(BindModel, ScheduleCountsInSamplesAsBridgeDoes) {
  // 0.015 of 100 iterations of 8 samples are 12 samples, 1.5 steps.
  ModelSpec spec = good(kSmall + "[scheduler]\nlr_warmup_fraction = 0.015\n");
  EXPECT_DOUBLE_EQ(spec.optimizer.warmup_steps, 1.5);
  // A warm-up as long as the decay is capped one sample below.
  spec = good(kSmall + "[scheduler]\nlr_warmup_iters = 200\n");
  EXPECT_DOUBLE_EQ(spec.optimizer.warmup_steps, 100 - 1.0 / 8);
}

TEST(BindModel, ProxyRuns) {
  const ModelSpec spec = good(kSmall + "[execute]\nsteps = 5\nlayer_limit = 2\n");
  EXPECT_EQ(spec.schedule.train_steps, 5);
  EXPECT_DOUBLE_EQ(spec.optimizer.decay_steps, 100);
  EXPECT_EQ(spec.dims.layers, 2);
  EXPECT_DOUBLE_EQ(spec.output_init_std, 0.02 / std::sqrt(8.0));
}

TEST(BindModel, TextDataHasByteTokens) {
  std::string text = kSmall + "[dataset]\npath = \"data/prose.txt\"\n";
  text.replace(text.find("vocab_size = 1000\n"), 18, "");
  const ModelSpec spec = *bind_spec(text, "bridge-0.4", "recipes/tiny.toml").spec;
  EXPECT_EQ(spec.dims.vocab, 256);
  EXPECT_EQ(spec.data.kind, "text");
  EXPECT_EQ(spec.data.path, "recipes/data/prose.txt");
  text = kSmall + "[dataset]\npath = \"/data/prose.txt\"\n";
  text.replace(text.find("1000"), 4, "100");
  EXPECT_THAT(bind_spec(text).errors(), ElementsAre("LW003 model.vocab_size"));
}

TEST(BindModel, CaptureKeysOfEachRelease) {
  ModelSpec spec =
      good(with_model("cuda_graph_impl = \"transformer_engine\"\ncuda_graph_scope = [\"attn\", "
                      "\"mlp\"]\nuse_te_rng_tracker = true"));
  EXPECT_EQ(spec.capture.extent, CaptureSpec::Extent::scoped);
  EXPECT_THAT(spec.capture.modules, ElementsAre("attn", "mlp"));
  EXPECT_TRUE(spec.capture.rng_tracker);
  // The default scope, "full", means whole layers.
  spec = good(with_model("cuda_graph_impl = \"transformer_engine\""));
  EXPECT_EQ(spec.capture.extent, CaptureSpec::Extent::scoped);
  EXPECT_THAT(spec.capture.modules, IsEmpty());
  EXPECT_FALSE(spec.capture.rng_tracker);
  spec = good(with_model("cuda_graph_impl = \"local\"\ncuda_graph_scope = [\"full_iteration\"]"));
  EXPECT_EQ(spec.capture.extent, CaptureSpec::Extent::iteration);
  spec = good(with_model("cuda_graph_impl = \"full_iteration\""), "bridge-0.6");
  EXPECT_EQ(spec.capture.extent, CaptureSpec::Extent::iteration);
  spec = good(with_model("cuda_graph_impl = \"transformer_engine\"\ncuda_graph_modules = [\"attn\"]"),
              "bridge-0.6");
  EXPECT_THAT(spec.capture.modules, ElementsAre("attn"));
  EXPECT_EQ(spec.capture.modules_key, "model.cuda_graph_modules");
  EXPECT_THAT(
      bind_spec(
          with_model("cuda_graph_impl = \"transformer_engine\"\ncuda_graph_scope = [\"full_iteration\"]"))
          .errors(),
      ElementsAre("LW004 model.cuda_graph_scope"));
}

TEST(BindModel, RecomputeKeys) {
  ModelSpec spec = good(with_model("recompute_granularity = \"selective\""));
  EXPECT_THAT(spec.recompute.modules, ElementsAre("core_attn"));
  spec = good(
      with_model("recompute_granularity = \"full\"\nrecompute_method = \"block\"\nrecompute_num_layers = 3"));
  EXPECT_EQ(spec.recompute.method, RecomputeSpec::Method::block);
  EXPECT_EQ(spec.recompute.num_layers, 3);
  EXPECT_THAT(bind_spec(with_model("recompute_granularity = \"full\"")).errors(),
              ElementsAre("LW003 model.recompute_method", "LW002 model.recompute_num_layers"));
  EXPECT_THAT(
      bind_spec(
          with_model("recompute_granularity = \"selective\"\nrecompute_modules = [\"moe_act\", \"mlp\"]"))
          .errors(),
      ElementsAre("LW001 model.recompute_modules"));
}

TEST(BindModel, MissingKeysAreNamedAllAtOnce) {
  EXPECT_THAT(
      bind_spec("[model]\nhidden_size = 64\n").errors(),
      ElementsAre("LW002 model.num_layers", "LW002 model.num_attention_heads", "LW002 model.vocab_size",
                  "LW002 train.micro_batch_size", "LW002 train.train_iters", "LW002 optimizer.lr"));
}

TEST(BindModel, AnImpossibleValueIsToldOnceAndNotCalledMissing) {
  std::string text = kSmall;
  text.replace(text.find("micro_batch_size = 2"), 20, "micro_batch_size = 0");
  EXPECT_THAT(bind_spec(text).errors(), ElementsAre("LW003 train.micro_batch_size"));
  EXPECT_THAT(
      bind_spec("[model]\nnum_layers = 0\nhidden_size = 64\nnum_attention_heads = 4\nvocab_size = 300\n"
                "[train]\nmicro_batch_size = 1\ntrain_iters = 3\n[optimizer]\nlr = 0.1\n")
          .errors(),
      ElementsAre("LW003 model.num_layers"));
}

TEST(BindModel, ValuesThatDoNotFitEachOther) {
  EXPECT_THAT(bind_spec(with_model("num_query_groups = 3")).errors(),
              ElementsAre("LW003 model.num_query_groups"));
  std::string text = kSmall;
  text.replace(text.find("global_batch_size = 8"), 21, "global_batch_size = 7");
  EXPECT_THAT(bind_spec(text).errors(), ElementsAre("LW003 train.global_batch_size"));
  EXPECT_THAT(bind_spec(with_model("position_embedding_type = \"rope\"\nrotary_percent = 0.1")).errors(),
              ElementsAre("LW003 model.rotary_percent"));
  EXPECT_THAT(bind_spec(with_model("hidden_dropout = 1.0")).errors(),
              ElementsAre("LW003 model.hidden_dropout"));
  EXPECT_THAT(bind_spec(kSmall + "[dataset]\nseq_length = 64\n").errors(),
              ElementsAre("LW003 dataset.seq_length"));
}

TEST(BindModel, HugeValuesAreRefusedNotOverflowed) {
  EXPECT_THAT(bind_spec(with_model("ffn_hidden_size = 9223372036854775807")).errors(),
              ElementsAre("LW003 model.ffn_hidden_size"));
  std::string text = kSmall;
  text.replace(text.find("micro_batch_size = 2"), 20, "micro_batch_size = 1000000");
  text.replace(text.find("global_batch_size = 8"), 21, "global_batch_size = 1000000");
  text.replace(text.find("seq_length = 32"), 15, "seq_length = 4000000");
  EXPECT_THAT(bind_spec(text).errors(), ElementsAre("LW003 train.micro_batch_size"));
}

struct Unsupported {
  const char* line;  ///< of [model]
  const char* error;
};

class UnsupportedModel : public testing::TestWithParam<Unsupported> {};

TEST_P(UnsupportedModel, IsRefusedByName) {
  const Bound bound = bind_spec(with_model(GetParam().line));
  EXPECT_FALSE(bound.spec.has_value());
  EXPECT_THAT(bound.errors(), ElementsAre(GetParam().error));
  for (const Diagnostic& d : bound.diagnostics) {
    if (d.severity != Severity::error) continue;
    ASSERT_FALSE(d.labels.empty());
    EXPECT_FALSE(d.notes.empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Keys, UnsupportedModel,
    testing::Values(
        Unsupported{"num_moe_experts = 8", "LW001 model.num_moe_experts"},
        Unsupported{"tensor_model_parallel_size = 2", "LW001 model.tensor_model_parallel_size"},
        Unsupported{"pipeline_model_parallel_size = 2", "LW001 model.pipeline_model_parallel_size"},
        Unsupported{"context_parallel_size = 2", "LW001 model.context_parallel_size"},
        Unsupported{"multi_latent_attention = true", "LW001 model.multi_latent_attention"},
        Unsupported{"bf16 = true\nfp8 = \"hybrid\"", "LW001 model.fp8"},
        Unsupported{"fp16 = true", "LW001 model.fp16"},
        Unsupported{"mtp_num_layers = 1", "LW001 model.mtp_num_layers"},
        Unsupported{"qk_layernorm = true", "LW001 model.qk_layernorm"},
        Unsupported{"layernorm_zero_centered_gamma = true", "LW001 model.layernorm_zero_centered_gamma"},
        Unsupported{"window_size = [128, 0]", "LW001 model.window_size"},
        Unsupported{"activation_func = \"relu\"", "LW001 model.activation_func"},
        Unsupported{"position_embedding_type = \"yarn\"", "LW001 model.position_embedding_type"},
        Unsupported{"is_hybrid_model = true", "LW001 model.is_hybrid_model"},
        Unsupported{"cpu_offloading = true", "LW001 model.cpu_offloading"}));

TEST(BindModel, ADerivedFactIsBlamedWhereItComesFrom) {
  const Bound bound = bind_spec(kSmall + "[cluster]\nnodes = 2\ngpus_per_node = 8\n");
  ASSERT_EQ(bound.diagnostics.size(), 1u);
  EXPECT_THAT(bound.diagnostics[0].message, HasSubstr("`cluster.world_size = 16`"));
  EXPECT_EQ(bound.diagnostics[0].labels.size(), 1u);
}

TEST(BindModel, OtherSectionsAreRefusedByName) {
  EXPECT_THAT(bind_spec(kSmall + "[cluster]\nnodes = 2\ngpus_per_node = 8\n").errors(),
              ElementsAre("LW001 cluster.world_size"));
  EXPECT_THAT(bind_spec(kSmall + "optimizer = \"sgd\"\n").errors(), ElementsAre("LW001 optimizer.optimizer"));
  EXPECT_THAT(bind_spec(kSmall + "[scheduler]\nlr_decay_style = \"WSD\"\n").errors(),
              ElementsAre("LW001 scheduler.lr_decay_style"));
}

TEST(BindModel, SettingsWithoutEffectAreListedNotIgnored) {
  const Bound bound =
      bind_spec(with_model("apply_rope_fusion = true\nmoe_router_topk = 4\nadd_bias_linear = true") +
                "[logger]\nlog_throughput = true\n");
  ASSERT_TRUE(bound.spec.has_value());
  ASSERT_EQ(bound.diagnostics.size(), 1u);
  EXPECT_EQ(bound.diagnostics[0].code, "LW007");
  EXPECT_EQ(bound.diagnostics[0].severity, Severity::hint);
  EXPECT_THAT(bound.diagnostics[0].message, HasSubstr("3 settings have no effect in Capstan's own runtime: "
                                                      "`logger.log_throughput`, `model.apply_rope_fusion`, "
                                                      "`model.moe_router_topk`"));
}

TEST(BindModel, WhatAsksForAnotherTrainingIsRefusedWhateverTheSchemaCallsItsEffect) {
  const auto refused = [](const std::string& text, const char* stack = "bridge-0.4") {
    return bind_spec(kSmall + text, stack).errors();
  };
  EXPECT_THAT(bind_spec(with_model("attn_logit_softcapping = 50.0")).errors(),
              ElementsAre("LW001 model.attn_logit_softcapping"));  // 50 is the default of the models that cap
  EXPECT_THAT(refused("[validation]\nskip_train = true\n"), ElementsAre("LW001 validation.skip_train"));
  EXPECT_THAT(refused("[checkpoint]\nload = \"old\"\n"), ElementsAre("LW001 checkpoint.load"));
  EXPECT_THAT(refused("[peft]\ndim = 8\nalpha = 16\n"), ElementsAre("LW001 peft.alpha"));  // once
  // Off is off.
  EXPECT_THAT(refused("[validation]\nskip_train = false\n[checkpoint]\nfinetune = false\n"), IsEmpty());
}

/// The small config with another value for one of its keys.
std::string with_value(const std::string& key, const std::string& value) {
  std::string text = kSmall;
  const std::size_t at = text.find(key + " = ");
  EXPECT_NE(at, std::string::npos) << key;
  return text.replace(at, text.find('\n', at) - at, key + " = " + value);
}

TEST(BindModel, ARefusedValueIsToldOnce) {
  for (const char* key : {"hidden_size", "num_attention_heads", "vocab_size"}) {
    EXPECT_THAT(bind_spec(with_value(key, "1000000000000") + "[dataset]\npath = \"x\"\n").errors(),
                ElementsAre(std::string("LW003 model.") + key));
  }
  EXPECT_THAT(bind_spec(with_model("kv_channels = 1000000000000")).errors(),
              ElementsAre("LW003 model.kv_channels"));
}

TEST(BindModel, WhatFollowsFromAValueIsBlamedOnThatValue) {
  const Bound wide_heads = bind_spec(with_value("hidden_size", "1048576"));
  EXPECT_THAT(wide_heads.errors(), ElementsAre("LW003 model.hidden_size"));
  EXPECT_THAT(wide_heads.diagnostics[0].message, HasSubstr("each of 4 heads would have 262144 channels"));
  const Bound wide = bind_spec(with_value("hidden_size", "1048576\nkv_channels = 16"));
  EXPECT_THAT(wide.errors(), ElementsAre("LW003 model.hidden_size"));
  EXPECT_THAT(wide.diagnostics[0].message, HasSubstr("is 4194304"));  // 4 times the hidden size
}

TEST(BindModel, AWarmUpThatOutlastsTheRunIsSaid) {
  const auto said = [](const char* warmup) {
    const Bound bound = bind_spec(with_model(std::string("cuda_graph_impl = \"local\"\ncuda_graph_scope = "
                                                         "[\"full_iteration\"]\nuse_te_rng_tracker = "
                                                         "true\ncuda_graph_warmup_steps = ") +
                                             warmup) +
                                  "[execute]\nsteps = 10\n");
    return bound.diagnostics.empty() ? "" : bound.diagnostics[0].code + " " + bound.diagnostics[0].message;
  };
  EXPECT_EQ(said("8"), "");
  EXPECT_THAT(said("9"), HasSubstr("nothing to replay in a run of 10"));
  EXPECT_THAT(said("100"), HasSubstr("LW007 100 steps of warm-up leave nothing to capture in a run of 10"));
}

TEST(BindModel, UnknownModelSettingsAreRefused) {
  // Known to the schema, without meaning for the runtime, and not at its default.
  EXPECT_THAT(bind_spec(with_model("softmax_type = \"learnable\"")).errors(),
              ElementsAre("LW001 model.softmax_type"));
  EXPECT_THAT(bind_spec(with_model("softmax_type = \"vanilla\"")).errors(), IsEmpty());
}

TEST(Compile, ReportsARefusedCaptureAtItsKey) {
  const auto bound = bind_text(with_model("cuda_graph_impl = \"transformer_engine\"\ncuda_graph_scope = "
                                          "[\"moe\"]\nuse_te_rng_tracker = true"),
                               "bridge-0.4");
  Sink sink;
  EXPECT_FALSE(
      compile({bound->config, *bound->schema, nullptr, "test.toml", "capstan test", &bound->sources}, sink)
          .has_value());
  ASSERT_EQ(sink.diagnostics().size(), 1u);
  const Diagnostic& diagnostic = sink.diagnostics()[0];
  EXPECT_EQ(diagnostic.code, "LW004");
  ASSERT_EQ(diagnostic.labels.size(), 1u);
  EXPECT_EQ(bound->sources.text(diagnostic.labels[0].span), "[\"moe\"]");
}

TEST(Compile, TheDigestFollowsTheSettings) {
  const auto digest = [](const std::string& text) {
    const auto bound = bind_text(text, "bridge-0.4");
    return config_digest(bound->config, bound->stack);
  };
  EXPECT_EQ(digest(kSmall), digest("# a comment\n" + kSmall));
  EXPECT_NE(digest(kSmall), digest(with_model("hidden_dropout = 0.2")));
}

}  // namespace
}  // namespace capstan::plan
