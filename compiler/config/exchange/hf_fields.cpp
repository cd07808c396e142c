#include "compiler/config/exchange/hf_fields.h"

#include <algorithm>
#include <map>
#include <set>

namespace capstan {

std::string_view hf_key(std::string_view field) {
  static const std::map<std::string_view, std::string_view> keys = {
      {"hidden_size", "model.hidden_size"},
      {"num_hidden_layers", "model.num_layers"},
      {"num_attention_heads", "model.num_attention_heads"},
      {"num_key_value_heads", "model.num_query_groups"},
      {"intermediate_size", "model.ffn_hidden_size"},
      {"head_dim", "model.kv_channels"},
      {"vocab_size", "model.vocab_size"},
      {"max_position_embeddings", "model.seq_length"},
      {"rope_theta", "model.rotary_base"},
      {"partial_rotary_factor", "model.rotary_percent"},
      {"rms_norm_eps", "model.layernorm_epsilon"},
      {"layer_norm_eps", "model.layernorm_epsilon"},
      {"layer_norm_epsilon", "model.layernorm_epsilon"},
      {"norm_eps", "model.layernorm_epsilon"},
      {"tie_word_embeddings", "model.share_embeddings_and_output_weights"},
      {"attention_bias", "model.add_qkv_bias"},
      {"mlp_bias", "model.add_bias_linear"},
      {"use_qk_norm", "model.qk_layernorm"},
      {"attention_dropout", "model.attention_dropout"},
      {"hidden_dropout", "model.hidden_dropout"},
      {"initializer_range", "model.init_method_std"},
      {"num_local_experts", "model.num_moe_experts"},
      {"num_experts", "model.num_moe_experts"},
      {"n_routed_experts", "model.num_moe_experts"},
      {"num_experts_per_tok", "model.moe_router_topk"},
      {"moe_intermediate_size", "model.moe_ffn_hidden_size"},
      {"shared_expert_intermediate_size", "model.moe_shared_expert_intermediate_size"},
      {"router_aux_loss_coef", "model.moe_aux_loss_coeff"},
      {"aux_loss_alpha", "model.moe_aux_loss_coeff"},
      {"scoring_func", "model.moe_router_score_function"},
      {"n_group", "model.moe_router_num_groups"},
      {"topk_group", "model.moe_router_group_topk"},
      {"routed_scaling_factor", "model.moe_router_topk_scaling_factor"},
      {"q_lora_rank", "model.q_lora_rank"},
      {"kv_lora_rank", "model.kv_lora_rank"},
      {"qk_nope_head_dim", "model.qk_head_dim"},
      {"qk_rope_head_dim", "model.qk_pos_emb_head_dim"},
      {"v_head_dim", "model.v_head_dim"},
      {"num_nextn_predict_layers", "model.mtp_num_layers"},
      {"mtp_num_hidden_layers", "model.mtp_num_layers"},
      {"query_pre_attn_scalar", "model.query_pre_attn_scalar"},
      {"attn_logit_softcapping", "model.attn_logit_softcapping"},
      {"final_logit_softcapping", "model.final_logit_softcapping"},
      {"full_attention_interval", "model.linear_attention_freq"},
      {"linear_conv_kernel_dim", "model.linear_conv_kernel_dim"},
      {"linear_key_head_dim", "model.linear_key_head_dim"},
      {"linear_value_head_dim", "model.linear_value_head_dim"},
      {"linear_num_key_heads", "model.linear_num_key_heads"},
      {"linear_num_value_heads", "model.linear_num_value_heads"},
      // GPT-2
      {"n_embd", "model.hidden_size"},
      {"n_layer", "model.num_layers"},
      {"n_head", "model.num_attention_heads"},
      {"n_positions", "model.seq_length"},
      {"n_inner", "model.ffn_hidden_size"},
      {"attn_pdrop", "model.attention_dropout"},
      {"resid_pdrop", "model.hidden_dropout"},
      // GPT-NeoX
      {"rotary_emb_base", "model.rotary_base"},
      {"rotary_pct", "model.rotary_percent"}};
  const auto found = keys.find(field);
  return found == keys.end() ? std::string_view() : found->second;
}

bool is_hf_bookkeeping(std::string_view field) {
  static const std::set<std::string_view> names = {
      "architectures", "model_type", "auto_map", "_name_or_path", "transformers_version", "use_cache",
      "bos_token_id", "eos_token_id", "pad_token_id", "sep_token_id", "unk_token_id",
      "decoder_start_token_id", "tokenizer_class", "output_attentions", "output_hidden_states",
      "output_router_logits", "return_dict", "pretraining_tp", "task_specific_params", "id2label", "label2id",
      "problem_type", "finetuning_task", "quantization_config", "cache_implementation", "ep_size",
      "_attn_implementation", "_attn_implementation_autoset", "gradient_checkpointing", "summary_activation",
      "summary_first_dropout", "summary_proj_to_labels", "summary_type", "summary_use_proj", "n_ctx",
      "max_window_layers", "use_sliding_window", "initial_context_length", "embd_pdrop", "swiglu_limit",
      "router_jitter_noise", "vision_config", "vision_start_token_id", "vision_end_token_id",
      "vision_token_id", "image_token_id", "video_token_id", "boi_token_index", "eoi_token_index",
      "image_token_index", "mm_tokens_per_image",
      // Read by no bridge: the router's behaviour follows from the family.
      "norm_topk_prob", "seq_aux", "topk_method", "decoder_sparse_step", "mlp_only_layers", "moe_layer_freq",
      "layer_types", "experts_per_token", "num_experts_per_token"};
  return names.contains(field);
}

std::string_view hf_activation(std::string_view name) {
  static const std::map<std::string_view, std::string_view> functions = {
      {"silu", "F.silu"},
      {"swish", "F.silu"},
      {"gelu", "F.gelu"},
      {"relu", "F.relu"},
      {"sigmoid", "F.sigmoid"},
      {"relu2", "squared_relu"},
      {"squared_relu", "squared_relu"},
      {"gelu_pytorch_tanh", "fast_gelu"},
      {"gelu_new", "fast_gelu"},  // the same tanh approximation under its older name
      {"fast_gelu", "fast_gelu"}};
  const auto found = functions.find(name);
  return found == functions.end() ? std::string_view() : found->second;
}

namespace {

using Settings = std::vector<std::pair<std::string, Value>>;

const std::map<std::string_view, Settings>& known_families() {
  static const auto joined = [](Settings first, const Settings& more) {
    first.insert(first.end(), more.begin(), more.end());
    return first;
  };
  static const std::map<std::string_view, Settings> families = [] {
    const Settings llama = {{"model.normalization", Value("RMSNorm")},
                            {"model.gated_linear_unit", Value(true)},
                            {"model.add_bias_linear", Value(false)},
                            {"model.hidden_dropout", Value(0.0)},
                            {"model.position_embedding_type", Value("rope")}};
    const Settings qwen3 =
        joined(llama, {{"model.add_qkv_bias", Value(false)}, {"model.qk_layernorm", Value(true)}});
    const Settings moe = {{"model.moe_grouped_gemm", Value(true)},
                          {"model.moe_token_dispatcher_type", Value("alltoall")},
                          {"model.moe_permute_fusion", Value(true)}};
    const Settings deepseek =
        joined(joined(llama, moe), {{"model.qk_layernorm", Value(true)},
                                    {"model.multi_latent_attention", Value(true)},
                                    {"model.share_embeddings_and_output_weights", Value(false)},
                                    {"model.moe_router_pre_softmax", Value(true)},
                                    {"model.moe_router_load_balancing_type", Value("seq_aux_loss")},
                                    {"model.moe_shared_expert_overlap", Value(true)},
                                    {"model.moe_router_dtype", Value("fp32")},
                                    {"model.apply_rope_fusion", Value(false)}});
    const Settings deepseek_v3 = joined(deepseek, {{"model.moe_router_score_function", Value("sigmoid")},
                                                   {"model.moe_router_enable_expert_bias", Value(true)},
                                                   {"model.moe_aux_loss_coeff", Value(0.0001)}});
    const Settings gemma = joined(llama, {{"model.attention_dropout", Value(0.0)},
                                          {"model.share_embeddings_and_output_weights", Value(true)},
                                          {"model.layernorm_zero_centered_gamma", Value(true)}});
    const Settings layer_norm = {{"model.normalization", Value("LayerNorm")},
                                 {"model.gated_linear_unit", Value(false)},
                                 {"model.add_bias_linear", Value(true)}};
    return std::map<std::string_view, Settings>{
        {"llama", llama},
        {"mistral", llama},
        {"qwen2", joined(llama, {{"model.add_qkv_bias", Value(true)}})},
        {"qwen2_5_vl_text", joined(llama, {{"model.add_qkv_bias", Value(true)}})},
        {"qwen3", qwen3},
        {"qwen3_moe", joined(joined(qwen3, moe), {{"model.moe_router_load_balancing_type", Value("aux_loss")},
                                                  {"model.moe_router_pre_softmax", Value(false)}})},
        {"qwen3_next",
         joined(joined(qwen3, moe), {{"model.moe_router_load_balancing_type", Value("global_aux_loss")},
                                     {"model.moe_router_pre_softmax", Value(false)},
                                     {"model.moe_shared_expert_gate", Value(true)},
                                     {"model.moe_router_dtype", Value("fp32")},
                                     {"model.layernorm_zero_centered_gamma", Value(true)},
                                     {"model.attention_output_gate", Value(true)},
                                     {"model.experimental_attention_variant", Value("gated_delta_net")}})},
        {"mixtral", llama},
        {"olmoe", joined(joined(llama, moe), {{"model.qk_layernorm", Value(true)},
                                              {"model.moe_router_load_balancing_type", Value("seq_aux_loss")},
                                              {"model.moe_router_pre_softmax", Value(true)},
                                              {"model.moe_router_dtype", Value("fp32")}})},
        {"deepseek_v2", deepseek},
        {"deepseek_v3", deepseek_v3},
        {"kimi_k2", deepseek_v3},
        {"gemma", gemma},
        {"gemma2", gemma},
        {"gpt_oss", joined(joined(llama, moe), {{"model.add_bias_linear", Value(true)},
                                                {"model.add_qkv_bias", Value(false)},
                                                {"model.position_embedding_type", Value("yarn")},
                                                {"model.moe_router_pre_softmax", Value(false)},
                                                {"model.moe_router_load_balancing_type", Value("none")},
                                                {"model.bias_dropout_fusion", Value(false)},
                                                {"model.softmax_type", Value("learnable")},
                                                {"model.window_attn_skip_freq", Value(2)}})},
        {"nemotron",
         {{"model.normalization", Value("LayerNorm")},
          {"model.add_bias_linear", Value(false)},
          {"model.hidden_dropout", Value(0.0)},
          {"model.layernorm_zero_centered_gamma", Value(true)},
          {"model.position_embedding_type", Value("rope")}}},
        {"gpt2", joined(layer_norm, {{"model.position_embedding_type", Value("learned_absolute")},
                                     {"model.share_embeddings_and_output_weights", Value(true)}})},
        {"gpt_neox", joined(layer_norm, {{"model.position_embedding_type", Value("rope")}})}};
  }();
  return families;
}

}  // namespace

std::vector<std::string_view> hf_keys_with_own_defaults(std::string_view model_type) {
  if (hf_family(model_type).empty()) return {};
  std::vector<std::string_view> keys = {
      "model.num_layers",        "model.hidden_size",      "model.num_attention_heads",
      "model.ffn_hidden_size",   "model.vocab_size",       "model.seq_length",
      "model.layernorm_epsilon", "model.init_method_std",  "model.share_embeddings_and_output_weights",
      "model.activation_func",   "model.attention_dropout"};
  const auto add = [&](std::initializer_list<std::string_view> more) {
    keys.insert(keys.end(), more.begin(), more.end());
  };
  const auto is_one_of = [&](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), model_type) != names.end();
  };
  const bool latent = is_one_of({"deepseek_v2", "deepseek_v3", "kimi_k2"});
  if (model_type == "gpt2") {
    add({"model.hidden_dropout"});
  } else {
    add({"model.rotary_base"});
    if (model_type != "gpt_neox" && !latent) add({"model.num_query_groups"});
  }
  if (is_one_of({"gemma", "gemma2", "gpt_oss", "qwen3", "qwen3_next"})) add({"model.kv_channels"});
  if (latent || is_one_of({"mixtral", "olmoe", "qwen3_moe", "qwen3_next", "gpt_oss"}))
    add({"model.num_moe_experts", "model.moe_router_topk", "model.moe_ffn_hidden_size",
         "model.moe_aux_loss_coeff"});
  if (latent)
    add({"model.moe_router_num_groups", "model.moe_router_group_topk", "model.moe_router_topk_scaling_factor",
         "model.moe_shared_expert_intermediate_size", "model.moe_layer_freq", "model.q_lora_rank",
         "model.kv_lora_rank", "model.qk_head_dim", "model.qk_pos_emb_head_dim", "model.v_head_dim"});
  return keys;
}

const std::vector<std::string>& hf_families() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, settings] : known_families()) all.emplace_back(name);
    return all;
  }();
  return names;
}

const std::vector<std::pair<std::string, Value>>& hf_family(std::string_view model_type) {
  static const Settings none;
  const auto found = known_families().find(model_type);
  return found == known_families().end() ? none : found->second;
}

}  // namespace capstan
