#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "compiler/plan/binding.h"

namespace capstan::plan {
namespace {

/// A key of which the runtime knows one value only: off (none, false, 0, an empty list), or one.
struct Limit {
  const char* path;
  enum class Only { off, one } only;
  const char* subject;  ///< "the runtime has no ..."
};

constexpr Limit::Only kOff = Limit::Only::off, kOne = Limit::Only::one;

constexpr std::array kLimits = {
    Limit{"model.tensor_model_parallel_size", kOne, "tensor parallelism"},
    Limit{"model.pipeline_model_parallel_size", kOne, "pipeline parallelism"},
    Limit{"model.context_parallel_size", kOne, "context parallelism"},
    Limit{"model.expert_model_parallel_size", kOne, "expert parallelism"},
    Limit{"model.virtual_pipeline_model_parallel_size", kOne, "pipeline parallelism"},
    Limit{"model.sequence_parallel", kOff, "sequence parallelism"},
    Limit{"cluster.world_size", kOne, "training over several GPUs yet"},
    Limit{"model.num_moe_experts", kOff, "mixture-of-experts layers"},
    Limit{"model.num_experts", kOff, "mixture-of-experts layers"},
    Limit{"model.multi_latent_attention", kOff, "multi-latent attention"},
    Limit{"model.experimental_attention_variant", kOff, "other attention than softmax attention"},
    Limit{"model.linear_attention_freq", kOff, "linear attention"},
    Limit{"model.is_hybrid_model", kOff, "Mamba layers"},
    Limit{"model.hybrid_override_pattern", kOff, "Mamba layers"},
    Limit{"model.hybrid_layer_pattern", kOff, "Mamba layers"},
    Limit{"model.hybrid_attention_ratio", kOff, "Mamba layers"},
    Limit{"model.mtp_num_layers", kOff, "multi-token prediction"},
    Limit{"model.fp4", kOff, "fp4"},
    Limit{"model.fp8_param", kOff, "parameters stored in fp8"},
    Limit{"mixed_precision.fp8_param", kOff, "parameters stored in fp8"},
    Limit{"mixed_precision.fp8_param_gather", kOff, "parameters stored in fp8"},
    Limit{"model.fp8_dot_product_attention", kOff, "attention in fp8"},
    Limit{"model.fp8_multi_head_attention", kOff, "attention in fp8"},
    Limit{"mixed_precision.fp8_dot_product_attention", kOff, "attention in fp8"},
    Limit{"mixed_precision.fp8_multi_head_attention", kOff, "attention in fp8"},
    Limit{"mixed_precision.fp4", kOff, "fp4"},
    Limit{"model.qk_layernorm", kOff, "normalised queries and keys"},
    Limit{"model.layernorm_zero_centered_gamma", kOff, "zero-centred norm weights"},
    Limit{"model.fp32_residual_connection", kOff, "an fp32 residual stream in bf16 training"},
    Limit{"model.apply_residual_connection_post_layernorm", kOff, "residual connections after the norm"},
    Limit{"model.apply_query_key_layer_scaling", kOff, "query-key layer scaling"},
    Limit{"model.rope_scaling", kOff, "scaled rotary positions"},
    Limit{"model.seq_len_interpolation_factor", kOff, "interpolated rotary positions"},
    Limit{"model.softmax_scale", kOff, "another softmax scale than 1/sqrt(channels)"},
    Limit{"model.window_size", kOff, "sliding-window attention"},
    Limit{"model.use_mup", kOff, "maximal-update parametrisation"},
    Limit{"model.activation_func_clamp_value", kOff, "clamped activations"},
    Limit{"model.glu_linear_offset", kOff, "an offset in the gated activation"},
    Limit{"model.attention_output_gate", kOff, "gated attention output"},
    Limit{"model.heterogeneous_block_specs", kOff, "layers that differ from each other"},
    Limit{"model.variable_seq_lengths", kOff, "sequences of different lengths"},
    Limit{"model.distribute_saved_activations", kOff, "activations spread over ranks"},
    Limit{"model.cpu_offloading", kOff, "offloading to the host"},
    Limit{"model.fine_grained_activation_offloading", kOff, "offloading to the host"},
    Limit{"model.delay_wgrad_compute", kOff, "delayed weight gradients"},
    Limit{"comm_overlap.delay_wgrad_compute", kOff, "delayed weight gradients"},
    Limit{"optimizer.optimizer_cpu_offload", kOff, "an optimizer on the host"},
    Limit{"optimizer.use_precision_aware_optimizer", kOff, "narrow optimizer state"},
    Limit{"optimizer.decoupled_lr", kOff, "a learning rate of its own for embeddings and head"},
    Limit{"optimizer.decoupled_min_lr", kOff, "a learning rate of its own for embeddings and head"},
    Limit{"scheduler.no_weight_decay_cond_type", kOff,
          "other weight-decay groups than matrices and the rest"},
    Limit{"ddp.use_megatron_fsdp", kOff, "sharded parameters"},
    Limit{"ddp.use_custom_fsdp", kOff, "sharded parameters"},
    Limit{"dist.use_torch_fsdp2", kOff, "sharded parameters"},
    Limit{"train.rampup_batch_size", kOff, "a batch size that grows"},
    Limit{"train.decrease_batch_size_if_needed", kOff, "a batch size that changes"},
    Limit{"train.iterations_to_skip", kOff, "steps that are skipped"},
    Limit{"train.use_dynamic_batch_size", kOff, "a batch size that changes"},
    Limit{"dataset.packed_sequence_specs", kOff, "packed sequences"},
    Limit{"dataset.pack_sequences_in_batch", kOff, "packed sequences"},
    Limit{"dataset.enable_in_batch_packing", kOff, "packed sequences"},
    Limit{"dataset.enable_offline_packing", kOff, "packed sequences"},
    Limit{"dataset.reset_position_ids", kOff, "positions that restart within a sequence"},
    Limit{"dataset.reset_attention_mask", kOff, "attention masks within a sequence"},
    Limit{"dataset.eod_mask_loss", kOff, "tokens without loss"},
};

/// A key that asks for another training than the plan's, where a layer of the config gives it a value other
/// than off. Not told by the schema's effect: it speaks of what the framework does with the key.
struct Feature {
  const char* path;     ///< a key, or a prefix that ends in a dot
  const char* subject;  ///< "the runtime ..."
  const char* way_out;
};

constexpr const char* kLeaveOut = "leave the key out for a run by Capstan";
constexpr const char* kOwnCheckpoints =
    "leave the key out for a run by Capstan; `capstan-run --resume` goes on from a checkpoint of its own";
constexpr const char* kOwnLength = "leave the key out for a run by Capstan, and give `execute.steps`";

constexpr std::array kFeatures = {
    Feature{"model.attn_logit_softcapping", "does not cap attention scores", kLeaveOut},
    Feature{"model.final_logit_softcapping", "does not cap logits", kLeaveOut},
    Feature{"model.use_inference_optimized_layers", "has no layers for inference", kLeaveOut},
    Feature{"train.skip_train", "only trains; it has no run that evaluates alone", kLeaveOut},
    Feature{"validation.skip_train", "only trains; it has no run that evaluates alone", kLeaveOut},
    Feature{"train.num_epochs", "does not count epochs", "give `train.train_iters` instead"},
    Feature{"train.exit_interval", "ends at the last step only", kOwnLength},
    Feature{"train.exit_duration_in_mins", "ends at the last step only", kOwnLength},
    Feature{"train.step_batch_size_schedule", "has no batch size that changes", kLeaveOut},
    Feature{"checkpoint.load", "reads no checkpoint of the framework", kOwnCheckpoints},
    Feature{"checkpoint.pretrained_checkpoint", "reads no checkpoint of the framework", kOwnCheckpoints},
    Feature{"checkpoint.finetune", "reads no checkpoint of the framework", kOwnCheckpoints},
    Feature{"dataset.inter_document_masking", "has no attention masks within a sequence", kLeaveOut},
    Feature{"rerun_state_machine.error_injection_rate", "injects no errors into results",
            "leave the key out; `capstan-run --inject` has drills of its own"},
    Feature{"peft.", "trains all weights; it has no adapters", "leave the section out for a run by Capstan"},
    Feature{"optimizer_config_override_provider.", "has one optimizer for all weights",
            "leave the section out for a run by Capstan"},
    Feature{"arguments.perform_rl_step", "has no reinforcement learning", kLeaveOut},
    Feature{"arguments.sft", "has no fine-tuning on conversations", kLeaveOut},
    Feature{"arguments.init_method_xavier_uniform", "draws initial weights from a normal distribution",
            kLeaveOut},
    Feature{"arguments.freeze_all_layers", "trains all weights", kLeaveOut},
    Feature{"arguments.phase_transition_iterations", "trains in one phase", kLeaveOut},
    Feature{"arguments.logits_load_dir", "learns from tokens, not from another model's logits", kLeaveOut},
    Feature{"arguments.fim_data", "does not rearrange documents for filling in", kLeaveOut},
    Feature{"arguments.spec", "has no models from a specification in Python", kLeaveOut},
    Feature{"arguments.retro_add_retriever", "has no retrieval", kLeaveOut},
    Feature{"arguments.bert_load", "reads no checkpoint of the framework", kOwnCheckpoints},
    Feature{"arguments.ict_load", "reads no checkpoint of the framework", kOwnCheckpoints},
    Feature{"arguments.kitchen_config_file", "has no quantisation by a file", kLeaveOut},
    Feature{"arguments.kitchen_recipe_number", "has no quantisation by a recipe's number", kLeaveOut},
    Feature{"arguments.te_precision_config_file", "has no precision by a file", kLeaveOut},
};

/// Settings that change neither what is computed nor how well: the framework's switches between kernels,
/// allocators and communication that Capstan's runtime decides itself. Those of effect `model` or `numerics`
/// in the schema stand here; others need no entry.
constexpr std::array<std::string_view, 37> kWithoutEffect = {"model.account_for_embedding_in_pipeline_split",
                                                             "model.account_for_loss_in_pipeline_split",
                                                             "model.apply_rotary_pos_emb_in_fp32",
                                                             "model.attention_softmax_in_fp32",
                                                             "model.autocast_dtype",
                                                             "model.barrier_with_L1_time",
                                                             "model.batch_invariant_mode",
                                                             "model.calculate_per_token_loss",
                                                             "model.clone_scatter_output_in_embedding",
                                                             "model.disable_bf16_reduced_precision_matmul",
                                                             "model.disable_parameter_transpose_cache",
                                                             "model.enable_autocast",
                                                             "model.flash_attention_version",
                                                             "model.hf_model_id",
                                                             "model.init_model_with_meta_device",
                                                             "model.max_position_embeddings",
                                                             "model.memory_efficient_layer_norm",
                                                             "model.persist_layer_norm",
                                                             "model.restore_modelopt_state",
                                                             "model.skip_getting_attention_mask_from_dataset",
                                                             "model.tokenizer_path",
                                                             "model.tokenizer_type",
                                                             "model.tp_only_amax_red",
                                                             "model.use_arbitrary_attention_mask",
                                                             "model.use_cpu_initialization",
                                                             "model.use_transformer_engine_full_layer_spec",
                                                             "mixed_precision.autocast_dtype",
                                                             "mixed_precision.autocast_enabled",
                                                             "dataset.split",
                                                             "optimizer.barrier_with_L1_time",
                                                             "optimizer.log_num_zeros_in_grad",
                                                             "optimizer.store_param_remainders",
                                                             "scheduler.override_opt_param_scheduler",
                                                             "scheduler.use_checkpoint_opt_param_scheduler",
                                                             "ddp.average_in_collective",
                                                             "optimizer.pin_cpu_grads",
                                                             "optimizer.pin_cpu_params"};

/// Keys that belong to a feature which is off, by prefix; the feature itself stands in kLimits.
constexpr std::array<std::string_view, 17> kOfFeaturesThatAreOff = {"model.expert_tensor_parallel_size",
                                                                    "model.moe_",
                                                                    "model.mamba_",
                                                                    "model.fp8_",
                                                                    "model.fp4_",
                                                                    "model.yarn_",
                                                                    "model.mup_",
                                                                    "model.mtp_",
                                                                    "model.rope_scaling_",
                                                                    "model.linear_",
                                                                    "model.inference_",
                                                                    "model.cpu_offloading_",
                                                                    "model.dsa_",
                                                                    "mixed_precision.fp8_",
                                                                    "mixed_precision.fp4_",
                                                                    "optimizer.muon_",
                                                                    "optimizer.lion_"};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool is_off(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return true;
    case Value::Kind::boolean:
      return !value.boolean();
    case Value::Kind::integer:
    case Value::Kind::floating:
      return value.number() == 0;
    case Value::Kind::string:
      return value.string().empty();
    case Value::Kind::list:
      return value.list().empty();
    case Value::Kind::table:
      return value.table().empty();
  }
  return false;
}

bool defines_the_model(const EffectiveConfig& config, const std::string& path) {
  const KeyView view = config.schema().find(path);
  if (view.info == nullptr) return false;
  static constexpr std::array<std::string_view, 8> kTrainingSections = {
      "model", "optimizer", "scheduler", "train", "ddp", "dataset", "rng", "mixed_precision"};
  if (std::find(kTrainingSections.begin(), kTrainingSections.end(), section_of(path)) ==
      kTrainingSections.end())
    return false;
  return view.info->effect == KeyEffect::model || view.info->effect == KeyEffect::numerics;
}

/// Bridge copies `[mixed_precision]`, defaults included, over the fields of the same names in these sections
/// (Megatron-Bridge, training/mixed_precision.py, setup).
bool is_overwritten_by_precision(const EffectiveConfig& config, const std::string& path) {
  static constexpr std::array<std::string_view, 3> kTargets = {"model", "optimizer", "ddp"};
  const std::string_view section = section_of(path);
  if (std::find(kTargets.begin(), kTargets.end(), section) == kTargets.end()) return false;
  const auto& settings = config.config().settings;
  const auto first = settings.lower_bound("mixed_precision.");
  if (first == settings.end() || section_of(first->first) != "mixed_precision") return false;
  return config.schema().find("mixed_precision" + path.substr(section.size())).info != nullptr;
}

template <typename Names>
bool lists(const Names& names, std::string_view path) {
  return std::find(names.begin(), names.end(), path) != names.end();
}

/// Once for a section of several settings.
void refuse_features(EffectiveConfig& config) {
  for (const Feature& feature : kFeatures) {
    const std::string_view wanted = feature.path;
    const bool whole_section = wanted.back() == '.';
    for (const auto& [path, setting] : config.config().settings) {
      if (whole_section ? !starts_with(path, wanted) : path != wanted) continue;
      if (is_off(setting.value)) continue;
      config.note_used(path);
      config.problem(
          "LW001", path,
          fmt::format("`{} = {}`: Capstan's runtime {}", path, to_text(setting.value), feature.subject),
          feature.way_out);
      if (whole_section) break;
    }
  }
}

}  // namespace

void refuse_unsupported(EffectiveConfig& config) {
  refuse_features(config);
  for (const Limit& limit : kLimits) {
    const Value value = config.value(limit.path);
    const bool fits =
        is_off(value) || (limit.only == Limit::Only::one && value.is_number() && value.number() == 1);
    if (fits) continue;
    const std::optional<Value> standard = config.default_of(limit.path);
    const bool usable = standard && (is_off(*standard) || *standard == Value(1));
    const Value wanted = usable ? *standard : limit.only == Limit::Only::one ? Value(1) : Value(false);
    config.problem("LW001", limit.path,
                   fmt::format("`{} = {}`: Capstan's runtime does not have {}", limit.path, to_text(value),
                               limit.subject),
                   fmt::format("for a run by Capstan, give `--set {}={}`", limit.path,
                               wanted.is_none() ? "null" : to_text(wanted)));
  }
}

void judge_unread_settings(EffectiveConfig& config) {
  // Read by the commands, by the choice of the stack, or given to the job's processes.
  static constexpr std::array<std::string_view, 4> kForeignSections = {"target", "env", "execute", "cluster"};
  std::vector<std::string> without_effect;
  for (const auto& [path, setting] : config.config().settings) {
    if (config.was_used(path) || lists(kForeignSections, section_of(path))) continue;
    const std::optional<Value> standard = config.default_of(path);
    if (standard && *standard == setting.value) continue;
    const bool of_feature =
        std::any_of(kOfFeaturesThatAreOff.begin(), kOfFeaturesThatAreOff.end(),
                    [&path = path](std::string_view prefix) { return starts_with(path, prefix); });
    const bool overwritten = is_overwritten_by_precision(config, path);
    if (overwritten) {
      const Setting* by = config.config().find("mixed_precision" + path.substr(section_of(path).size()));
      if (by != nullptr && by->value == setting.value) continue;
    }
    if (!of_feature && !overwritten && !lists(kWithoutEffect, path) && defines_the_model(config, path)) {
      config.problem("LW001", path,
                     fmt::format("Capstan's runtime does not know what `{} = {}` means for the model", path,
                                 to_text(setting.value)),
                     "leave the key out for a run by Capstan");
      continue;
    }
    without_effect.push_back(path);
  }
  if (without_effect.empty()) return;
  std::string list;
  for (const std::string& path : without_effect) list += (list.empty() ? "`" : ", `") + path + "`";
  config.problem("LW007", without_effect.front(),
                 fmt::format("{} setting{} no effect in Capstan's own runtime: {}", without_effect.size(),
                             without_effect.size() == 1 ? " has" : "s have", list));
}

}  // namespace capstan::plan
