#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/asks_for_nothing.h"
#include "compiler/plan/binding.h"
#include "compiler/plan/key_roles.h"

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
    Limit{"dist.use_megatron_fsdp", kOff, "sharded parameters"},
    Limit{"ddp.delay_wgrad_compute", kOff, "delayed weight gradients"},
    Limit{"ddp.fp4_param_gather", kOff, "parameters stored in fp4"},
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
    Feature{"arguments.moe_use_upcycling", "has no mixture-of-experts layers", kLeaveOut},
    Feature{"arguments.dataloader_inter_document_masking", "has no attention masks within a sequence",
            kLeaveOut},
    Feature{"arguments.use_legacy_models", "has one form of the model", kLeaveOut},
    Feature{"arguments.yaml_cfg", "does not read the file", "import the file and leave the argument out"},
    Feature{"arguments.warmup", "does not read this argument", "give `scheduler.lr_warmup_fraction` instead"},
    Feature{"arguments.batch_size", "does not read this argument", "give `train.micro_batch_size` instead"},
    Feature{"arguments.model_parallel_size", "does not have tensor parallelism", kLeaveOut},
    Feature{"arguments.checkpoint_activations", "does not read this argument",
            "give `model.recompute_granularity` and `model.recompute_method` instead"},
    Feature{"arguments.norm_epsilon", "does not read this argument",
            "give `model.layernorm_epsilon` instead"},
    Feature{"arguments.openai_gelu", "does not read this argument",
            "give `model.activation_func = \"openai_gelu\"` instead"},
    Feature{"arguments.apply_layernorm_1p", "does not have zero-centred norm weights", kLeaveOut},
    Feature{"arguments.rotary_seq_len_interpolation_factor", "does not have interpolated rotary positions",
            kLeaveOut},
    Feature{"arguments.use_rope_scaling", "does not have scaled rotary positions", kLeaveOut},
    Feature{"arguments.use_rotary_position_embeddings", "does not read this argument",
            "give `model.position_embedding_type = \"rope\"` instead"},
    Feature{"arguments.encoder_seq_length", "does not read this argument", "give `model.seq_length` instead"},
    Feature{"arguments.decoder_num_layers", "does not read this argument", "give `model.num_layers` instead"},
    Feature{"arguments.grad_reduce_in_bf16", "does not read this argument",
            "give `ddp.grad_reduce_in_fp32 = false` instead"},
    Feature{"arguments.accumulate_allreduce_grads_in_fp32", "does not read this argument",
            "give `ddp.grad_reduce_in_fp32 = true` instead"},
    Feature{"arguments.fake_process_group", "does not pretend to have further processes", kLeaveOut},
};

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
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
    bool told = false;
    for (const auto& [path, setting] : config.config().settings) {
      if (whole_section ? !starts_with(path, wanted) : path != wanted) continue;
      if (asks_for_nothing(setting.value)) {
        if (whole_section) config.note_used(path);
        continue;
      }
      config.note_used(path);
      if (told) continue;
      told = whole_section;
      config.problem(
          "LW001", path,
          fmt::format("`{} = {}`: Capstan's runtime {}", path, to_text(setting.value), feature.subject),
          feature.way_out);
    }
  }
}

std::string quoted(const std::vector<std::string>& paths) {
  std::string list;
  for (const std::string& path : paths) list += (list.empty() ? "`" : ", `") + path + "`";
  return list;
}

/// One warning for all: the training is what the config says, what stands beside it is left out.
void report_not_done(EffectiveConfig& config,
                     const std::map<std::string_view, std::vector<std::string>>& paths_by_subject) {
  if (paths_by_subject.empty()) return;
  std::string list;
  for (const auto& [subject, paths] : paths_by_subject)
    list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", subject, quoted(paths));
  config.problem("LW008", paths_by_subject.begin()->second.front(),
                 fmt::format("the config asks for what a run by Capstan does not do: {}", list),
                 "leave the keys out for a run by Capstan, or take the run as it is");
}

}  // namespace

void refuse_unsupported(EffectiveConfig& config) {
  refuse_features(config);
  for (const Limit& limit : kLimits) {
    const Value value = config.value(limit.path);
    const bool fits = asks_for_nothing(value) ||
                      (limit.only == Limit::Only::one && value.is_number() && value.number() == 1);
    if (fits) continue;
    const std::optional<Value> standard = config.default_of(limit.path);
    const bool usable = standard && (asks_for_nothing(*standard) || *standard == Value(1));
    const Value wanted = usable ? *standard : limit.only == Limit::Only::one ? Value(1) : Value(false);
    config.problem("LW001", limit.path,
                   fmt::format("`{} = {}`: Capstan's runtime does not have {}", limit.path, to_text(value),
                               limit.subject),
                   fmt::format("for a run by Capstan, give `--set {}={}`", limit.path,
                               wanted.is_none() ? "null" : to_text(wanted)));
  }
}

bool is_refused_where_set(std::string_view path) {
  for (const Limit& limit : kLimits)
    if (path == limit.path) return true;
  for (const Feature& feature : kFeatures) {
    const std::string_view wanted = feature.path;
    if (wanted.back() == '.' ? starts_with(path, wanted) : path == wanted) return true;
  }
  return false;
}

void judge_unread_settings(EffectiveConfig& config) {
  // Read by the commands and by the choice of the stack.
  static constexpr std::array<std::string_view, 3> kForeignSections = {"target", "execute", "cluster"};
  std::vector<std::string> without_effect;
  std::map<std::string_view, std::vector<std::string>> not_done;  // by subject
  for (const auto& [path, setting] : config.config().settings) {
    if (config.was_used(path) || lists(kForeignSections, section_of(path))) continue;
    const std::optional<Value> standard = config.default_of(path);
    if (standard && *standard == setting.value) continue;
    if (is_overwritten_by_precision(config, path)) {
      const Setting* by = config.config().find("mixed_precision" + path.substr(section_of(path).size()));
      if (by == nullptr || by->value != setting.value) without_effect.push_back(path);
      continue;
    }
    const KeyRow* row = find_key_row(path);
    if (row == nullptr) {
      config.problem("LW001", path,
                     fmt::format("Capstan's runtime does not know what `{} = {}` means for the model", path,
                                 to_text(setting.value)),
                     "leave the key out for a run by Capstan");
    } else if (row->role == KeyRole::not_done && !asks_for_nothing(setting.value)) {
      not_done[row->subject].push_back(path);
    } else if (row->role != KeyRole::translated) {
      without_effect.push_back(path);
    }
  }
  report_not_done(config, not_done);
  if (without_effect.empty()) return;
  config.problem("LW007", without_effect.front(),
                 fmt::format("{} setting{} no effect in Capstan's own runtime: {}", without_effect.size(),
                             without_effect.size() == 1 ? " has" : "s have", quoted(without_effect)));
}

}  // namespace capstan::plan
