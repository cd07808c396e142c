#include "compiler/plan/key_roles.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace capstan::plan {
namespace {

struct KeyGroup {
  KeyRole role;
  std::string_view subject;
  std::string_view section;
  std::string_view names;  ///< separated by spaces; `*` at the end of a name stands for any rest
};

constexpr KeyRole kDecided = KeyRole::decided, kOfAbsent = KeyRole::of_absent, kNotDone = KeyRole::not_done,
                  kTranslated = KeyRole::translated;

constexpr std::string_view kKernels = "kernels", kSending = "communication between processes",
                           kMemory = "memory", kHost = "the framework's processes",
                           kInit = "building the framework's model", kLoading = "loading of data",
                           kSame = "the result is the same";
constexpr std::string_view kEvaluation = "evaluation",
                           kOtherData = "data of another source than `dataset.path`",
                           kOrder = "the framework's choice and order of samples",
                           kTokenizer = "a tokenizer (text is read as bytes)",
                           kLogs = "other logs than `metrics.jsonl`",
                           kSaves = "checkpoints in the framework's format and place",
                           kDumps = "dumps of tensors", kProfiles = "profiles",
                           kFaults = "detection of faults and restarts", kChecks = "these checks",
                           kReinforcement = "phases of reinforcement learning";
constexpr std::string_view kExperts = "mixture-of-experts layers", kMamba = "Mamba layers",
                           kFp8 = "fp8 or another fp8 recipe", kFp4 = "fp4", kFsdp = "sharded parameters",
                           kOffload = "offloading", kVision = "vision models", kRl = "reinforcement learning",
                           kInference = "inference",
                           kOthersPrograms = "other programs than the pretraining of GPT";

constexpr std::array kGroups = {
    // -- model
    KeyGroup{
        kDecided, kKernels, "model",
        "apply_rope_fusion attention_backend bias_dropout_add_fusion bias_dropout_fusion "
        "batch_invariant_mode "
        "cross_entropy_fusion_impl cross_entropy_loss_fusion disable_bf16_reduced_precision_matmul "
        "disable_parameter_transpose_cache flash_attention_version fused_residual_rmsnorm "
        "fused_single_qkv_rope gradient_accumulation_fusion masked_softmax_fusion "
        "memory_efficient_layer_norm "
        "persist_layer_norm transformer_impl use_te_activation_func use_transformer_engine_full_layer_spec "
        "dense_grouped_gemm use_grouped_gemm_for_dense_mlp use_fused_weighted_squared_relu "
        "cuda_graph_retain_backward_graph cuda_graph_use_single_mempool"},
    KeyGroup{kDecided, kSending, "model",
             "async_tensor_model_parallel_allreduce batch_p2p_comm batch_p2p_sync "
             "clone_scatter_output_in_embedding "
             "cp_comm_type encoder_pipeline_model_parallel_size hierarchical_context_parallel_sizes "
             "hybrid_context_parallel microbatch_group_size_per_vp_stage overlap_p2p_comm "
             "overlap_p2p_comm_warmup_flush parallel_output pipeline_model_parallel_comm_backend "
             "pipeline_model_parallel_layout scatter_embedding_sequence_parallel "
             "tensor_parallel_num_weight_shards "
             "tp_comm_* tp_only_amax_red account_for_embedding_in_pipeline_split "
             "account_for_loss_in_pipeline_split"},
    KeyGroup{kDecided, kMemory, "model",
             "deallocate_pipeline_outputs num_microbatches_with_partial_activation_checkpoints"},
    KeyGroup{kDecided, kInit, "model",
             "hf_model_id init_model_with_meta_device restore_modelopt_state use_cpu_initialization "
             "hetereogenous_dist_checkpoint temporal_ckpt_compat"},
    // The scores' softmax and the rotation are computed in fp32; sequences are whole, so a loss per token is
    // the mean of the micro-batches; a table of positions longer than the sequences has rows that nothing
    // reads.
    KeyGroup{kDecided, kSame, "model",
             "apply_rotary_pos_emb_in_fp32 attention_softmax_in_fp32 autocast_dtype enable_autocast "
             "calculate_per_token_loss max_position_embeddings skip_getting_attention_mask_from_dataset "
             "use_arbitrary_attention_mask"},
    KeyGroup{kDecided, kHost, "model", "barrier_with_L1_time config_logger_dir timers"},
    KeyGroup{kNotDone, kLogs, "model", "log_max_attention_logit"},
    KeyGroup{kNotDone, kTokenizer, "model", "tokenizer_path tokenizer_type"},
    KeyGroup{kOfAbsent, kExperts, "model",
             "moe_* expert_tensor_parallel_size expert_tensor_parallel_num_weight_shards "
             "ep_overlap_early_attn_memory_release overlap_dispatch_backward_with_experts_wgrad "
             "overlap_moe_expert_parallel_comm use_grouped_gemm_for_shared_expert"},
    KeyGroup{kOfAbsent, kMamba, "model", "mamba_* gdp_num_chunk_states_to_recompute"},
    KeyGroup{kOfAbsent, kFp8, "model", "fp8_*"},
    KeyGroup{kOfAbsent, kFp4, "model", "fp4_*"},
    KeyGroup{kOfAbsent, "other rotary positions", "model", "yarn_* rope_scaling_*"},
    KeyGroup{kOfAbsent, "maximal-update parametrisation", "model", "mup_*"},
    KeyGroup{kOfAbsent, "multi-token prediction", "model", "mtp_*"},
    KeyGroup{kOfAbsent, "other attention", "model",
             "linear_* dsa_* mla_down_proj_fusion kitchen_attention_backend mhc_recompute_layer_num"},
    KeyGroup{kOfAbsent, kInference, "model", "inference_*"},
    KeyGroup{kOfAbsent, kOffload, "model",
             "cpu_offloading_* activation_offload_fraction delay_offload_until_cuda_graph "
             "delta_offload_bytes_across_pp_ranks fine_grained_offloading_max_inflight_offloads "
             "min_offloaded_tensor_size offload_modules"},
    KeyGroup{kOfAbsent, kVision, "model",
             "recompute_vision vision_recompute_* vision_cuda_graph_* max_vision_cuda_graph_seq_length "
             "radio_force_cpe_eval_mode radio_force_eval_mode vit_gradient_checkpointing "
             "megatron_mimo_parallelism_config mimo_parallelism_config"},
    // -- mixed_precision
    KeyGroup{kDecided, kSame, "mixed_precision", "autocast_dtype autocast_enabled"},
    KeyGroup{kOfAbsent, kFp8, "mixed_precision", "fp8_*"},
    KeyGroup{kOfAbsent, kFp4, "mixed_precision", "fp4_*"},
    // -- optimizer, scheduler
    KeyGroup{kDecided, kHost, "optimizer", "barrier_with_L1_time"},
    KeyGroup{kDecided, kSending, "optimizer",
             "overlap_param_gather overlap_param_gather_with_optimizer_step use_distributed_optimizer"},
    KeyGroup{kDecided, kMemory, "optimizer", "store_param_remainders pin_cpu_grads pin_cpu_params"},
    KeyGroup{kNotDone, kLogs, "optimizer", "log_num_zeros_in_grad"},
    KeyGroup{kOfAbsent, kOffload, "optimizer",
             "optimizer_offload_fraction use_torch_optimizer_for_cpu_offload overlap_cpu_optimizer_d2h_h2d"},
    KeyGroup{kOfAbsent, "other optimizers", "optimizer", "muon_* lion_*"},
    KeyGroup{kOfAbsent, "checkpoints of the framework", "scheduler",
             "override_opt_param_scheduler use_checkpoint_opt_param_scheduler"},
    // -- ddp, dist, comm_overlap: one process sends nothing
    KeyGroup{
        kDecided, kSending, "ddp",
        "align_param_gather average_in_collective bucket_size disable_symmetric_registration "
        "gradient_reduce_div_fusion nccl_ub num_buckets num_distributed_optimizer_instances "
        "outer_dp_sharding_strategy overlap_grad_reduce overlap_param_gather pad_buckets_for_high_nccl_busbw "
        "suggested_communication_unit_size use_distributed_optimizer"},
    KeyGroup{kOfAbsent, kFsdp, "ddp", "data_parallel_sharding_strategy fsdp_* megatron_fsdp_*"},
    KeyGroup{kNotDone, kChecks, "ddp", "check_for_large_grads"},
    KeyGroup{kDecided, kSending, "dist", "*"},
    KeyGroup{kDecided, kSending, "comm_overlap", "*"},
    // -- rng
    KeyGroup{kDecided, kSame, "rng", "data_parallel_random_init inference_rng_tracker"},
    // -- train, validation
    KeyGroup{kNotDone, kEvaluation, "train", "eval_interval eval_iters manual_gc_eval"},
    KeyGroup{kNotDone, kEvaluation, "validation", "*"},
    KeyGroup{kNotDone, kChecks, "train", "gpu_sniff_test_interval"},
    KeyGroup{kNotDone, kReinforcement, "train", "max_tokens_per_gpu"},
    // A run by Capstan ends in order at SIGINT and SIGTERM, always, and sees every step's outcome.
    KeyGroup{
        kDecided, kHost, "train",
        "check_optimizer_step_success check_weight_hash_across_dp_replicas_interval "
        "empty_unused_memory_level "
        "exit_signal exit_signal_handler exit_signal_handler_for_dataloader exit_signal_handler_for_training "
        "manual_gc manual_gc_interval skip_sync_grad_norm_across_mp train_sync_interval"},
    KeyGroup{kNotDone, kReinforcement, "rollout", "*"},
    KeyGroup{kNotDone, kReinforcement, "offload", "*"},
    // -- dataset, tokenizer
    KeyGroup{
        kNotDone, kOtherData, "dataset",
        "blend blend_per_split data_path dataset_dict dataset_name dataset_root dataset_subset download_mode "
        "hf_* image_* img_start_token_id maker_* max_prompt_length max_response_length max_train_samples "
        "num_base_examples num_images path_or_dataset per_dataset_sequences_path process_example_fn prompt "
        "repo_id rewrite source source_weights subset task_encoder type adapter_kwargs caption_key "
        "collate_impl dataset_kwargs encoder_patch_size global_data_keys load_kwargs patch_* preprocessing "
        "schema_adapter sequences_per_dataset trust_remote_code"},
    KeyGroup{
        kNotDone, kOrder, "dataset",
        "add_extra_token_to_sequence blend_seed data_sharding dataloader_type dataset_sampling drop_last "
        "mid_level_dataset_surplus oversize_policy sample_count seed sequence_length shuffle_buffer_size "
        "split split_val_from_train train_samples max_samples_per_sequence"},
    KeyGroup{kNotDone, kEvaluation, "dataset",
             "do_test do_validation drop_last_partial_validation_sequence full_validation "
             "multiple_validation_sets "
             "num_val_workers skip_test test_maker_kwargs test_samples test_source val_maker_kwargs "
             "val_proportion "
             "valid_samples validation_source"},
    KeyGroup{kNotDone, kTokenizer, "dataset", "tokenizer tokenizer_path"},
    KeyGroup{kDecided, kLoading, "dataset",
             "cache_dir context_parallel_size create_attention_mask data_parallel_size dataloader_load "
             "dataloader_save defer_npy_index_mmap delete_raw fast_cache_load hybrid_context_parallel "
             "memmap_workers micro_batch_size mmap_bin_files num_dataset_builder_threads num_workers "
             "object_storage_cache_path path_to_cache persistent_workers pg_collection pin_memory "
             "sequence_parallel_size skip_getting_attention_mask_from_dataset"},
    KeyGroup{
        kOfAbsent, "packed or padded sequences", "dataset",
        "allow_ambiguous_pad_tokens defer_in_batch_packing_to_step fixed_pack_idx "
        "in_batch_packing_pad_to_multiple_of max_packing_seqlen offline_packing_specs packing_buffer_size "
        "pad_to_max_length pad_to_multiple_of seqlen_divisible_by"},
    KeyGroup{kNotDone, kTokenizer, "tokenizer", "*"},
    // -- checkpoint
    KeyGroup{
        kNotDone, kSaves, "checkpoint",
        "save also_save_hf_checkpoint custom_manager_class hf_* most_recent_k non_persistent_* replication "
        "save_retain_interval"},
    KeyGroup{kNotDone, kDumps, "checkpoint",
             "save_activations_interval save_dgrads_interval save_params_interval "
             "save_tokens_per_expert_interval save_wgrads_interval"},
    KeyGroup{kOfAbsent, "checkpoints of the framework", "checkpoint", "*"},
    // -- logger, profiling, tensor_inspect
    KeyGroup{kDecided, kHost, "logger",
             "barrier_with_L1_time filter_warnings log_throughput logging_level modules_to_filter "
             "runtime_time_unit set_level_for_all_loggers throughput_window_size timing_log_level "
             "timing_log_option"},
    KeyGroup{kNotDone, kLogs, "logger", "*"},
    KeyGroup{kNotDone, kProfiles, "profiling",
             "nvtx_ranges record_memory_history use_nsys_profiler use_pytorch_profiler"},
    KeyGroup{kOfAbsent, kProfiles, "profiling", "*"},
    KeyGroup{kNotDone, kDumps, "tensor_inspect", "enabled"},
    KeyGroup{kOfAbsent, kDumps, "tensor_inspect", "*"},
    // -- checks, faults
    KeyGroup{kNotDone, kChecks, "rerun_state_machine", "check_for_spiky_loss rerun_mode"},
    KeyGroup{kOfAbsent, kChecks, "rerun_state_machine", "error_injection_type spiky_loss_factor"},
    KeyGroup{kNotDone, kFaults, "ft", "*"},
    KeyGroup{kNotDone, kFaults, "inprocess_restart", "*"},
    KeyGroup{kNotDone, kFaults, "nvrx_straggler", "*"},
    KeyGroup{kNotDone, kFaults, "straggler", "*"},
    // -- environment: `capstan run` starts its runtime in its own environment, whatever a config file names
    KeyGroup{kDecided, "the environment of the framework's processes", "env", "*"},
    KeyGroup{kDecided, "the environment of the framework's processes", "env_vars", "*"},
    // -- arguments of Megatron-LM that have no key of their own elsewhere
    KeyGroup{kTranslated, "a rewrite", "arguments",
             "bias_gelu_fusion bias_swiglu_fusion decoder_first_pipeline_num_layers "
             "decoder_last_pipeline_num_layers group_query_attention num_layers_per_virtual_pipeline_stage "
             "quick_geglu recompute_activations squared_relu"},
    KeyGroup{kOfAbsent, kRl, "arguments", "grpo_* langrl_* rl_* refit_method"},
    KeyGroup{kOfAbsent, kInference, "arguments",
             "decode_only_cuda_graphs disable_chunked_prefill enable_chunked_prefill inference_* "
             "mamba_inference_* num_speculative_tokens use_legacy_static_engine max_tokens_to_oom"},
    KeyGroup{kOfAbsent, kMamba, "arguments", "disable_mamba_mem_eff_path"},
    KeyGroup{kOfAbsent, kExperts, "arguments", "moe_upcycling_granularity"},
    KeyGroup{
        kOfAbsent, kOthersPrograms, "arguments",
        "bert_* biencoder_* block_data_path classes_fraction data_per_class_fraction dino_* embedding_path "
        "evidence_data_path fim_* head_lr_mult ict_head_size img_h img_w indexer_* iter_per_epoch "
        "logits_load_* mask_factor mask_prob mask_type num_channels num_classes output_bert_embeddings "
        "patch_dim query_in_block_prob retriever_* retro_* sample_rate sft_tokenizer_prompt_format "
        "short_seq_prob swin_backbone_type titles_data_path use_one_sent_docs vision_* decoder_seq_length"},
    KeyGroup{kNotDone, kDumps, "arguments", "logits_save_* dump_param_to_param_group_map"},
    KeyGroup{kNotDone, kLogs, "arguments",
             "app_tag_run_name app_tag_run_version enable_one_logger one_logger_* otel_* "
             "result_rejected_tracker_filename run_workload_inspector_server"},
    KeyGroup{
        kNotDone, kOtherData, "arguments",
        "data_args_path mock_data per_split_data_args_path test_data_path train_data_path valid_data_path"},
    KeyGroup{kNotDone, kOrder, "arguments", "offset_sampling_seed_by_dp_rank"},
    KeyGroup{kNotDone, kTokenizer, "arguments", "tokenizer_*"},
    KeyGroup{kNotDone, kProfiles, "arguments", "profile"},
    KeyGroup{
        kNotDone, kFaults, "arguments",
        "adlr_autoresume adlr_autoresume_interval calc_ft_timeouts enable_ft_package ft_num_warmup_iters "
        "inprocess_*"},
    KeyGroup{
        kOfAbsent, "checkpoints of the framework", "arguments",
        "ckpt_* dist_ckpt_format_deprecated load_model_opt_format no_load_optim no_load_rng no_save_optim "
        "no_save_rng override_ckpt_iteration use_dist_ckpt_deprecated enable_msc disable_msc_deprecated"},
    KeyGroup{kOfAbsent, kFsdp, "arguments",
             "enable_full_sharding_in_hsdp torch_fsdp2_reshard_after_forward use_layer_wise_param_layout"},
    KeyGroup{kDecided, kLoading, "arguments",
             "create_attention_mask_in_dataloader data_cache_path dataloader_defer_npy_index_mmap "
             "dataloader_fast_cache_load"},
    KeyGroup{kDecided, kSending, "arguments",
             "create_all_gather_group ddp_average_in_collective ddp_bucket_size ddp_num_buckets "
             "ddp_pad_buckets_for_high_nccl_busbw ddp_param_name_patterns_for_fp32_local_accumulation "
             "ddp_reduce_scatter_with_fp32_accumulation enable_gloo_process_groups "
             "gtp_* scatter_gather_tensors_in_pipeline"},
    // Off, it is refused by the argument check unless the positions are rotary, and then it says nothing.
    KeyGroup{kDecided, kSame, "arguments", "add_position_embedding"},
    KeyGroup{kDecided, kKernels, "arguments",
             "cuda_graph_scope_deprecated no_persist_layer_norm onnx_safe use_flash_attn "
             "deprecated_use_mcore_models enable_experimental"},
};

std::vector<KeyRow> make_rows() {
  // Names are joined once; the rows keep views of them.
  static std::vector<std::string> paths;
  std::vector<std::pair<std::size_t, const KeyGroup*>> found;
  for (const KeyGroup& group : kGroups) {
    std::string_view rest = group.names;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find(' '), rest.size());
      found.emplace_back(paths.size(), &group);
      paths.push_back(std::string(group.section) + "." + std::string(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  std::vector<KeyRow> rows;
  rows.reserve(found.size());
  for (const auto& [index, group] : found) rows.push_back({paths[index], group->role, group->subject});
  std::sort(rows.begin(), rows.end(), [](const KeyRow& a, const KeyRow& b) { return a.key < b.key; });
  return rows;
}

}  // namespace

const std::vector<KeyRow>& key_rows() {
  static const std::vector<KeyRow> rows = make_rows();
  return rows;
}

const KeyRow* find_key_row(std::string_view path) {
  const KeyRow* best = nullptr;
  for (const KeyRow& row : key_rows()) {
    const bool is_prefix = row.key.back() == '*';
    const std::string_view stem = is_prefix ? row.key.substr(0, row.key.size() - 1) : row.key;
    const bool fits = is_prefix ? path.substr(0, stem.size()) == stem : path == stem;
    if (!fits) continue;
    if (!is_prefix) return &row;
    if (best == nullptr || stem.size() + 1 > best->key.size()) best = &row;
  }
  return best;
}

}  // namespace capstan::plan
