// Hugging Face config.json as the model section. Source of the meaning: the model bridges of
// NVIDIA-NeMo/Megatron-Bridge (src/megatron/bridge/models), which build the same fields from these names.
#include <fmt/format.h>

#include <map>

#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"

namespace capstan {
namespace {

const std::map<std::string, std::string>& direct_keys() {
  static const std::map<std::string, std::string> keys = {
      {"hidden_size", "model.hidden_size"},
      {"num_hidden_layers", "model.num_layers"},
      {"num_attention_heads", "model.num_attention_heads"},
      {"num_key_value_heads", "model.num_query_groups"},
      {"intermediate_size", "model.ffn_hidden_size"},
      {"head_dim", "model.kv_channels"},
      {"vocab_size", "model.vocab_size"},
      {"rope_theta", "model.rotary_base"},
      {"rms_norm_eps", "model.layernorm_epsilon"},
      {"layer_norm_eps", "model.layernorm_epsilon"},
      {"layer_norm_epsilon", "model.layernorm_epsilon"},
      {"tie_word_embeddings", "model.share_embeddings_and_output_weights"},
      {"attention_bias", "model.add_qkv_bias"},
      {"attention_dropout", "model.attention_dropout"},
      {"initializer_range", "model.init_method_std"},
      {"num_local_experts", "model.num_moe_experts"},
      {"num_experts", "model.num_moe_experts"},
      {"n_routed_experts", "model.num_moe_experts"},
      {"num_experts_per_tok", "model.moe_router_topk"},
      {"moe_intermediate_size", "model.moe_ffn_hidden_size"},
      {"shared_expert_intermediate_size", "model.moe_shared_expert_intermediate_size"},
      {"router_aux_loss_coef", "model.moe_aux_loss_coeff"},
      {"n_group", "model.moe_router_num_groups"},
      {"topk_group", "model.moe_router_group_topk"},
      {"routed_scaling_factor", "model.moe_router_topk_scaling_factor"},
      {"q_lora_rank", "model.q_lora_rank"},
      {"kv_lora_rank", "model.kv_lora_rank"},
      {"qk_nope_head_dim", "model.qk_head_dim"},
      {"qk_rope_head_dim", "model.qk_pos_emb_head_dim"},
      {"v_head_dim", "model.v_head_dim"},
      {"num_nextn_predict_layers", "model.mtp_num_layers"},
      {"sliding_window", "model.window_size"}};
  return keys;
}

}  // namespace

std::optional<std::vector<Layer>> read_hf_config(const ReadContext& context) {
  const auto tree = read_yaml(context);  // JSON is read as YAML, which keeps places
  if (!tree) return std::nullopt;
  if (tree->kind != SyntaxNode::Kind::table ||
      (find(*tree, "hidden_size") == nullptr && find(*tree, "model_type") == nullptr)) {
    context.sink.problem(
        "EX005", "this is no Hugging Face model config: it has neither `model_type` nor `hidden_size`",
        Span{context.file, 0, 1});
    return std::nullopt;
  }
  LayerBuilder builder(OriginKind::file, context.file);
  for (const SyntaxEntry& entry : tree->entries) {
    ++context.record.total;
    const auto set = [&](std::string_view path, Value value) {
      if (knows(context.view, path)) builder.set(path, entry.key_span, std::move(value), entry.value.span);
    };
    if (entry.key == "hidden_act" || entry.key == "hidden_activation") {
      ++context.record.mapped;
      const std::string name =
          entry.value.scalar.kind() == Value::Kind::string ? entry.value.scalar.string() : "";
      if (name == "silu" || name == "swish") {
        set("model.gated_linear_unit", Value(true));
        set("model.activation_func", Value("F.silu"));
      } else if (name == "gelu" || name == "relu") {
        set("model.activation_func", Value("F." + name));
      } else if (name == "relu2") {
        set("model.activation_func", Value("squared_relu"));
      } else {
        report_not_literal(context, entry.key,
                           fmt::format("no activation function of the framework is named `{}`", name),
                           entry.value.span);
        builder.set_unknown("model.activation_func", entry.key_span, entry.value.span);
      }
      continue;
    }
    const auto direct = direct_keys().find(entry.key);
    if (direct == direct_keys().end() || entry.value.kind != SyntaxNode::Kind::scalar ||
        entry.value.scalar.is_none() || entry.key == "sliding_window") {
      context.record.irrelevant.push_back(
          {entry.key,
           direct == direct_keys().end() ? "no part of the model section" : "not set, or no plain value",
           entry.key_span});
      continue;
    }
    if (!knows(context.view, direct->second)) {
      context.record.irrelevant.push_back(
          {entry.key, fmt::format("{} has no `{}`", context.view.stack().name, direct->second),
           entry.key_span});
      continue;
    }
    ++context.record.mapped;
    builder.set(direct->second, entry.key_span, entry.value);
    if (entry.key == "rms_norm_eps") set("model.normalization", Value("RMSNorm"));
    if (entry.key == "rope_theta") set("model.position_embedding_type", Value("rope"));
    if (entry.key == "kv_lora_rank") set("model.multi_latent_attention", Value(true));
  }
  std::vector<Layer> layers;
  layers.push_back(builder.take());
  return layers;
}

}  // namespace capstan
