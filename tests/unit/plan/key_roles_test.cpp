#include "compiler/plan/key_roles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "compiler/plan/bind_model.h"
#include "compiler/plan/binding.h"
#include "compiler/plan/compile.h"
#include "compiler/plan/json.h"
#include "tests/support/bound_config.h"

namespace capstan::plan {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Sections that describe the job and its machine; commands, rules and the choice of the stack read them.
const std::set<std::string, std::less<>> kDescribing = {"target", "cluster", "execute"};

using Settings = std::map<std::string, std::string>;  // path -> TOML value

const Settings kBody = {{"model.num_layers", "2"},          {"model.hidden_size", "64"},
                        {"model.num_attention_heads", "4"}, {"model.vocab_size", "1000"},
                        {"model.seq_length", "32"},         {"train.micro_batch_size", "2"},
                        {"train.global_batch_size", "8"},   {"train.train_iters", "100"},
                        {"optimizer.lr", "1e-3"},           {"execute.data", "\"random\""}};

/// An empty value takes the setting away.
std::string text_of(const Settings& more) {
  Settings all = kBody;
  for (const auto& [path, value] : more) all[path] = value;
  std::string text;
  for (const auto& [path, value] : all)
    if (!value.empty()) text += path + " = " + value + "\n";
  return text;
}

/// Every key that the lowering asks for, over configs that take its branches.
std::set<std::string> read_keys() {
  std::set<std::string> read;
  const std::vector<Settings> branches = {
      {},
      {{"mixed_precision.recipe", "\"bf16_with_fp8_current_scaling_mixed\""}},
      {{"mixed_precision.bf16", "true"}, {"mixed_precision.fp8", "\"hybrid\""}},
      {{"tokenizer.tokenizer_type", "\"NullTokenizer\""}}};
  for (const Settings& branch : branches) {
    const auto bound = bind_text(text_of(branch), "bridge-0.4");
    Sink sink;
    EffectiveConfig config(bound->config, *bound->schema, nullptr, &bound->sources, sink);
    ModelSpec spec;
    config.text("execute.backend", "auto");  // bind_model's own
    refuse_unsupported(config);
    bind_architecture(config, spec);
    bind_precision(config, spec);
    bind_training(config, spec);
    bind_recompute(config, spec);
    bind_capture(config, spec);
    for (const KeyInfo& key : builtin_schema().keys())
      if (config.was_used(key.path)) read.insert(key.path);
  }
  return read;
}

/// Defines what is trained: refused by its effect when it is set and nothing knows it.
bool defines_the_training(const KeyInfo& key) {
  return key.effect == KeyEffect::model || key.effect == KeyEffect::numerics;
}

TEST(KeyRoles, EveryKeyOfTheSchemaHasAPlace) {
  const std::set<std::string> read = read_keys();
  std::vector<std::string> homeless;
  for (const KeyInfo& key : builtin_schema().keys()) {
    if (kDescribing.count(section_of(key.path)) != 0 || read.count(key.path) != 0) continue;
    if (find_key_row(key.path) != nullptr || is_refused_where_set(key.path)) continue;
    // Left to the refusal of what nobody knows; right for keys of the model alone.
    if (defines_the_training(key)) continue;
    homeless.push_back(key.path);
  }
  EXPECT_THAT(homeless, IsEmpty());
}

TEST(KeyRoles, EveryKeyOfCapstansOwnSectionIsRead) {
  const std::set<std::string> read = read_keys();
  std::vector<std::string> unread;
  for (const KeyInfo& key : builtin_schema().keys())
    if (section_of(key.path) == "execute" && read.count(key.path) == 0) unread.push_back(key.path);
  EXPECT_THAT(unread, IsEmpty());
}

TEST(KeyRoles, ARowNamesKeysThatExistAndThatNothingReads) {
  const std::set<std::string> read = read_keys();
  for (const KeyRow& row : key_rows()) {
    std::size_t own = 0;
    for (const KeyInfo& key : builtin_schema().keys()) {
      if (find_key_row(key.path) != &row) continue;
      ++own;
      const bool exact = row.key.back() != '*';
      EXPECT_FALSE(exact && read.count(key.path) != 0) << key.path << " is read";
      EXPECT_FALSE(exact && is_refused_where_set(key.path)) << key.path << " is refused";
    }
    EXPECT_GT(own, 0u) << "no key for row " << row.key;
  }
}

TEST(KeyRoles, NoKeyThatTheFrameworkCallsModelIsLeftToAPrefixOfTheUndone) {
  // What defines the model stands in the table by name, or belongs to a feature that is off.
  for (const KeyInfo& key : builtin_schema().keys()) {
    const KeyRow* row = find_key_row(key.path);
    if (row == nullptr || key.effect != KeyEffect::model || section_of(key.path) != "model") continue;
    EXPECT_TRUE(row->key == key.path || row->role == KeyRole::of_absent) << key.path;
  }
}

// ---------------------------------------------------------------------------------------------------
// Each key that is read makes a difference.

/// The plan's text without the digests of the config, or what was said instead.
std::string outcome_of(const Settings& settings, const std::string& stack) {
  const auto bound = bind_text(text_of(settings), stack);
  if (!bound->sink.diagnostics().empty()) return "";
  Sink sink;
  auto plan =
      compile({bound->config, *bound->schema, nullptr, "test.toml", "capstan test", &bound->sources}, sink);
  std::string outcome;
  for (const Diagnostic& d : sink.diagnostics()) outcome += d.code + " " + d.message + "\n";
  if (!plan) return outcome;
  plan->config_digest.clear();
  return outcome + write_json(*plan);
}

std::vector<std::string> candidates(const KeySpec& spec) {
  std::vector<std::string> values;
  const TypeSet& type = spec.type;
  for (const std::string& word : spec.values) values.push_back('"' + word + '"');
  if (type.boolean) values.insert(values.end(), {"true", "false"});
  if (type.integer) values.insert(values.end(), {"1", "2", "4", "16", "64", "100"});
  if (type.floating) values.insert(values.end(), {"0.5", "1e-4", "0.25"});
  if (type.dtype) values.insert(values.end(), {"\"bf16\"", "\"fp32\"", "\"fp16\""});
  if (type.table) values.push_back("{a = 1}");
  if (type.list && type.list_integer) values.insert(values.end(), {"[1]", "[4, 4, 100]"});
  if (type.list) values.insert(values.end(), {"[\"mlp\"]", "[\"attn\"]", "[\"layernorm\"]"});
  if (type.string) {
    for (const char* word : {"none", "NullTokenizer", "local", "silu", "rope", "selective", "full", "block",
                             "cosine", "text", "hybrid", "bf16_mixed", "eager", "/tmp/data.txt"})
      values.push_back('"' + std::string(word) + '"');
  }
  return values;
}

/// Settings under which a key counts that says nothing else by itself.
const std::vector<Settings> kContexts = {
    {},
    {{"model.position_embedding_type", "\"rope\""}},
    {{"model.should_pad_vocab", "true"}},
    {{"model.gated_linear_unit", "true"}, {"model.activation_func", "\"silu\""}},
    {{"model.bias_activation_fusion", "false"}},
    {{"model.add_bias_linear", "false"}},
    {{"mixed_precision.bf16", "true"}},
    {{"mixed_precision.recipe", "\"bf16_with_fp8_current_scaling_mixed\""}},
    {{"mixed_precision.bf16", "true"},
     {"mixed_precision.fp8", "\"hybrid\""},
     {"mixed_precision.first_last_layers_bf16", "true"}},
    {{"model.bf16", "true"}},
    {{"model.bf16", "true"},
     {"model.fp8", "\"hybrid\""},
     {"model.fp8_recipe", "\"tensorwise\""},
     {"model.first_last_layers_bf16", "true"}},
    {{"model.recompute_granularity", "\"full\""},
     {"model.recompute_method", "\"uniform\""},
     {"model.recompute_num_layers", "1"}},
    {{"model.recompute_granularity", "\"selective\""}},
    {{"model.cuda_graph_impl", "\"local\""}},
    {{"model.cuda_graph_impl", "\"local\""}, {"rng.te_rng_tracker", "true"}},
    {{"model.cuda_graph_impl", "\"local\""},
     {"model.use_te_rng_tracker", "true"},
     {"model.cuda_graph_scope", "\"full_iteration\""}},
    {{"train.train_iters", ""}, {"train.train_samples", "800"}},
    {{"scheduler.lr_warmup_iters", "10"}},
    {{"scheduler.end_weight_decay", "0.1"}},
    {{"scheduler.start_weight_decay", "0.1"}, {"scheduler.end_weight_decay", "0.2"}},
    {{"execute.data", "\"text\""}, {"dataset.path", "\"/tmp/data.txt\""}},
    {{"model.seq_length", ""}},
    {{"model.vocab_size", ""}},
    {{"model.vocab_size", ""}, {"tokenizer.vocab_size", "300"}},
    {{"model.vocab_size", ""}, {"tokenizer.tokenizer_type", "\"NullTokenizer\""}},
};

/// Whether two values of the key are told apart; where a release has one value only, that from none.
bool makes_a_difference(const KeyInfo& key, const std::string& stack) {
  const KeySpec* spec = spec_for(key, *builtin_schema().find_stack(stack));
  if (spec == nullptr) return false;
  for (const Settings& context : kContexts) {
    std::set<std::string> outcomes;
    std::size_t legal = 0;
    for (const std::string& value : candidates(*spec)) {
      Settings settings = context;
      settings[key.path] = value;
      std::string outcome = outcome_of(settings, stack);
      if (outcome.empty()) continue;  // no config of this stack
      ++legal;
      outcomes.insert(std::move(outcome));
      if (outcomes.size() > 1) return true;
    }
    if (legal == 1 && *outcomes.begin() != outcome_of(context, stack)) return true;
  }
  return false;
}

TEST(KeyRoles, EachKeyThatIsReadChangesThePlanOrIsToldOf) {
  // Every op of the runtime is deterministic; a plan has one pipeline stage, which sends nothing.
  const std::set<std::string> without = {"model.deterministic_mode", "model.pipeline_dtype",
                                         "mixed_precision.pipeline_dtype"};
  for (const std::string& path : read_keys()) {
    const KeyInfo& key = *builtin_schema().find(path);
    if (without.count(path) != 0) {
      EXPECT_FALSE(makes_a_difference(key, "bridge-0.4")) << path;
      continue;
    }
    EXPECT_TRUE(makes_a_difference(key, "bridge-0.4") || makes_a_difference(key, "bridge-0.6") ||
                makes_a_difference(key, "bridge-0.2") || makes_a_difference(key, "megatron-lm-0.17"))
        << path;
  }
}

TEST(KeyRoles, WhatARunDoesNotDoIsOneWarningAndWhatItDecidesOneHint) {
  const auto bound = bind_text(text_of({{"validation.eval_interval", "50"},
                                        {"logger.wandb_project", "\"x\""},
                                        {"logger.tensorboard_dir", "\"y\""},
                                        {"checkpoint.save", "\"z\""},
                                        {"tokenizer.tokenizer_type", "\"GPT2BPETokenizer\""},
                                        {"profiling.profile_step_end", "9"},
                                        {"ddp.overlap_grad_reduce", "true"},
                                        {"model.attention_backend", "\"flash\""}}),
                               "bridge-0.4");
  Sink sink;
  const auto spec = bind_model(
      {bound->config, *bound->schema, nullptr, "test.toml", "capstan test", &bound->sources}, sink);
  ASSERT_TRUE(spec);
  ASSERT_EQ(sink.diagnostics().size(), 2u);
  const Diagnostic& warning = sink.diagnostics()[0];
  EXPECT_EQ(warning.code, "LW008");
  EXPECT_EQ(warning.severity, Severity::warning);
  EXPECT_EQ(
      warning.message,
      "the config asks for what a run by Capstan does not do: a tokenizer (text is read as bytes) "
      "(`tokenizer.tokenizer_type`), checkpoints in the framework's format and "
      "place (`checkpoint.save`), evaluation (`validation.eval_interval`), other logs than `metrics.jsonl` "
      "(`logger.tensorboard_dir`, `logger.wandb_project`)");
  EXPECT_EQ(sink.diagnostics()[1].code, "LW007");
  EXPECT_THAT(sink.diagnostics()[1].message,
              HasSubstr("3 settings have no effect in Capstan's own runtime: `ddp.overlap_grad_reduce`, "
                        "`model.attention_backend`, `profiling.profile_step_end`"));
}

TEST(KeyRoles, ArgumentsOfMegatronLMThatChangeTheModelCount) {
  const Settings untied = {{"arguments.untie_embeddings_and_output_weights", "true"}};
  const Settings tied = {{"arguments.untie_embeddings_and_output_weights", "false"}};
  const auto spec_of = [](const Settings& settings, const std::string& stack = "megatron-lm-0.17") {
    const auto bound = bind_text(text_of(settings), stack);
    EXPECT_THAT(bound->sink.diagnostics(), IsEmpty()) << bound->sink.diagnostics()[0].message;
    Sink sink;
    return bind_model({bound->config, *bound->schema, nullptr, "test.toml", "capstan test", &bound->sources},
                      sink);
  };
  ASSERT_TRUE(spec_of(untied) && spec_of(tied));
  EXPECT_FALSE(spec_of(untied)->tied_head);
  EXPECT_TRUE(spec_of(tied)->tied_head);
  // It knows no `model.vocab_size` from 0.18 on; the tokenizer's size is padded.
  const Settings null = {{"model.vocab_size", ""},
                         {"tokenizer.tokenizer_type", "\"NullTokenizer\""},
                         {"tokenizer.vocab_size", "300"}};
  ASSERT_TRUE(spec_of(null));
  EXPECT_EQ(spec_of(null)->dims.vocab, 301);  // and an end of document
  EXPECT_EQ(spec_of(null)->dims.padded_vocab, 384);
  EXPECT_FALSE(spec_of({{"arguments.norm_epsilon", "1e-6"}}, "megatron-lm-0.15"));
  EXPECT_FALSE(spec_of({{"arguments.openai_gelu", "true"}}, "megatron-lm-0.15"));
}

}  // namespace
}  // namespace capstan::plan
