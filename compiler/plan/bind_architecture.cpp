#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/plan/binding.h"

namespace capstan::plan {
namespace {

std::int64_t needed(EffectiveConfig& config, const char* path, const char* what, std::int64_t most) {
  const Value found = config.value(path);
  // The release's default of 0 means "not given".
  if (found.is_none() || found == Value(0)) {
    config.require(path, what);
    return 1;
  }
  return config.integer(path, 1, most, 1);
}

constexpr std::int64_t kMostChannels = 4096;

/// The framework fills in what is not given, from values that were: those are what a problem is about.
void bind_head_width(EffectiveConfig& config, ModelSpec& spec) {
  Dims& dims = spec.dims;
  const bool given = config.is_set("model.kv_channels");
  const bool sound =
      !config.was_refused("model.hidden_size") && !config.was_refused("model.num_attention_heads");
  const Value stated = config.value("model.kv_channels");
  dims.head_dim = std::max<std::int64_t>(1, dims.hidden / dims.heads);
  if (given) {
    dims.head_dim = config.integer("model.kv_channels", 1, kMostChannels, dims.head_dim);
  } else if (stated.kind() == Value::Kind::integer && sound) {
    dims.head_dim = stated.integer();
  }
  if (!sound || config.was_refused("model.kv_channels")) {
    dims.head_dim = 1;
  } else if (dims.head_dim < 1 || dims.head_dim > kMostChannels) {
    config.problem("LW003", "model.hidden_size",
                   fmt::format("each of {} heads would have {} channels; a plan takes 1 to {}", dims.heads,
                               dims.head_dim, kMostChannels),
                   "give another number of heads, or `model.kv_channels`");
    dims.head_dim = 1;
  } else if (stated.is_none() && dims.hidden % dims.heads != 0) {
    config.problem(
        "LW003", "model.num_attention_heads",
        fmt::format("{} attention heads do not divide the hidden size {}", dims.heads, dims.hidden),
        "set `model.kv_channels`, or choose a number of heads that divides");
  } else if (dims.heads * dims.head_dim > kMostWidth) {
    config.problem("LW003", "model.num_attention_heads",
                   fmt::format("{} heads of {} channels are wider than a plan can hold ({})", dims.heads,
                               dims.head_dim, kMostWidth));
  }
}

std::int64_t bind_feed_forward_width(EffectiveConfig& config, std::int64_t hidden) {
  if (config.is_set("model.ffn_hidden_size"))
    return config.integer("model.ffn_hidden_size", 1, kMostWidth, 4 * hidden);
  const Value derived = config.value("model.ffn_hidden_size");
  const std::int64_t width = derived.kind() == Value::Kind::integer ? derived.integer() : 4 * hidden;
  if (config.was_refused("model.hidden_size")) return 4 * hidden;
  if (width >= 1 && width <= kMostWidth) return width;
  config.problem(
      "LW003", "model.hidden_size",
      fmt::format("the feed-forward width that follows from `model.hidden_size = {}` is {}; a plan "
                  "takes at most {}",
                  hidden, width, kMostWidth),
      "give `model.ffn_hidden_size`, or a smaller model");
  return 1;
}

void bind_dims(EffectiveConfig& config, ModelSpec& spec) {
  Dims& dims = spec.dims;
  dims.layers = needed(config, "model.num_layers", "number of transformer layers", kMostLayers);
  // Initial weights depend on the whole model's depth, a proxy run's too.
  const double full_depth = static_cast<double>(dims.layers);
  if (const auto limit = config.integer("execute.layer_limit", 1, kMostLayers))
    dims.layers = std::min(dims.layers, *limit);
  dims.hidden = needed(config, "model.hidden_size", "width of the residual stream", kMostWidth);
  dims.heads = needed(config, "model.num_attention_heads", "number of query heads", kMostHeads);
  // The framework fills in the number of heads; 0 when that is missing, which was reported above.
  const bool groups_follow =
      !config.is_set("model.num_query_groups") &&
      (config.value("model.num_query_groups") == Value(0) || config.was_refused("model.num_attention_heads"));
  dims.kv_heads =
      groups_follow ? dims.heads : config.integer("model.num_query_groups", 1, kMostHeads, dims.heads);
  if (dims.heads % dims.kv_heads != 0) {
    config.problem(
        "LW003", "model.num_query_groups",
        fmt::format("{} query groups do not divide {} attention heads", dims.kv_heads, dims.heads));
  }
  bind_head_width(config, spec);
  dims.ffn_hidden = bind_feed_forward_width(config, dims.hidden);

  const auto model_length = config.integer("model.seq_length", 1, kMostPositions);
  const auto data_length = config.integer("dataset.seq_length", 1, kMostPositions);
  if (config.is_set("model.seq_length") && data_length && model_length && *data_length != *model_length) {
    config.problem(
        "LW003", "dataset.seq_length",
        fmt::format("sequences of {} tokens do not fit a model of length {}", *data_length, *model_length),
        "give `model.seq_length` and `dataset.seq_length` the same value");
  }
  dims.seq_length = config.is_set("model.seq_length") ? model_length.value_or(1)
                                                      : data_length.value_or(model_length.value_or(1024));

  const double std = config.number("model.init_method_std", 0, 100, 0.02);
  spec.init_std = std;
  spec.embedding_init_std = config.number("model.embedding_init_method_std", 0, 100, std);
  // Megatron Core's scaled initialisation of the matrices that end a residual branch.
  spec.output_init_std = std / std::sqrt(2.0 * full_depth);
}

/// Tokens of the tokenizer that is known by its settings alone; none where the size lies in its files.
std::optional<std::int64_t> tokens_of_null_tokenizer(EffectiveConfig& config) {
  const Setting* type = config.config().find("tokenizer.tokenizer_type");
  if (type == nullptr || type->value != Value("NullTokenizer")) return std::nullopt;
  config.note_used("tokenizer.tokenizer_type");
  auto tokens = config.integer("tokenizer.vocab_size", 1, kMostVocabulary - 1);
  // Until Megatron Core 0.18 it adds an end of document (megatron/core/tokenizers/text/libraries/
  // null_tokenizer.py, vocab_size).
  static constexpr Version kCountsTheEnd{0, 18, 0, 0, 0};
  const Version* core = config.schema().stack().version_of("megatron-core");
  if (tokens && core != nullptr && *core < kCountsTheEnd) ++*tokens;
  return tokens;
}

/// The release's own key for the size where `model.vocab_size` is none or unknown.
void require_vocabulary(EffectiveConfig& config) {
  const bool by_model = config.schema().find("model.vocab_size").spec != nullptr;
  config.require(by_model ? "model.vocab_size" : "tokenizer.padded_vocab_size", "number of tokens");
}

void bind_vocabulary(EffectiveConfig& config, ModelSpec& spec) {
  Dims& dims = spec.dims;
  const std::string data = config.text("execute.data", "");
  const bool bytes = data == "text" || (data.empty() && config.is_set("dataset.path"));
  const Value stated = config.value("model.vocab_size");
  const bool is_stated = !stated.is_none() && stated != Value(0);
  const auto padded = config.integer("tokenizer.padded_vocab_size", 1, kMostVocabulary);
  const auto of_tokenizer = tokens_of_null_tokenizer(config);
  constexpr std::int64_t kByteTokens = 256;
  if (is_stated) {
    dims.vocab = config.integer("model.vocab_size", 1, kMostVocabulary, 1);
    if (bytes && stated.kind() == Value::Kind::integer && stated.integer() > 0 &&
        stated.integer() < kByteTokens) {
      config.problem("LW003", "model.vocab_size",
                     fmt::format("bytes of text need {} tokens, the model has {}", kByteTokens, dims.vocab),
                     "leave `model.vocab_size` out, or set it to 256 or more");
    }
  } else if (bytes) {
    dims.vocab = kByteTokens;
  } else if (of_tokenizer || padded) {
    dims.vocab = of_tokenizer.value_or(padded.value_or(1));
  } else {
    require_vocabulary(config);
    dims.vocab = 1;
  }
  dims.padded_vocab = dims.vocab;
  const std::int64_t multiple =
      config.integer("model.make_vocab_size_divisible_by", 1, kMostVocabularyMultiple, 128);
  // Megatron-LM pads always; Bridge where the tokenizer gives the size (training/setup.py,
  // _validate_and_set_vocab_size).
  const bool by_tokenizer = !is_stated && !bytes && of_tokenizer.has_value();
  if (config.boolean("model.should_pad_vocab", false) || by_tokenizer)
    dims.padded_vocab = (dims.vocab + multiple - 1) / multiple * multiple;
  if (!is_stated && !bytes && padded) dims.padded_vocab = std::max(*padded, dims.vocab);
  // Megatron-LM's argument says the opposite of Bridge's key.
  spec.tied_head = config.boolean("model.share_embeddings_and_output_weights", true) &&
                   !config.boolean("arguments.untie_embeddings_and_output_weights", false);
}

void bind_norm(EffectiveConfig& config, ModelSpec& spec) {
  const std::string name = config.text("model.normalization", "LayerNorm");
  if (name == "RMSNorm") {
    spec.normalization = Normalization::rms_norm;
  } else if (name == "LayerNorm") {
    spec.normalization = Normalization::layer_norm;
  } else {
    config.problem("LW001", "model.normalization", fmt::format("the runtime has no normalization `{}`", name),
                   "use `RMSNorm` or `LayerNorm`");
  }
  spec.norm_eps = config.number("model.layernorm_epsilon", 0, 1, 1e-5);
}

void bind_activation(EffectiveConfig& config, ModelSpec& spec) {
  spec.linear_bias = config.boolean("model.add_bias_linear", true);
  if (config.boolean("model.disable_bias_linear", false)) spec.linear_bias = false;
  spec.qkv_bias = config.boolean("model.add_qkv_bias", false) || spec.linear_bias;

  const bool swiglu_flag = config.boolean("model.swiglu", false);  // Megatron-LM's argument
  const bool gated = config.boolean("model.gated_linear_unit", false) || swiglu_flag;
  const std::string name = swiglu_flag ? "silu" : config.text("model.activation_func", "gelu");
  const bool fused = config.boolean("model.bias_activation_fusion", false);
  if (gated && (name == "silu" || name == "swish")) {
    spec.activation = Activation::swiglu;
  } else if (!gated && name == "gelu") {
    // Megatron Core's fused bias and GELU computes the tanh approximation, the unfused one the exact
    // function.
    spec.activation = fused && spec.linear_bias ? Activation::gelu_tanh : Activation::gelu;
  } else if (!gated && (name == "openai_gelu" || name == "gelu_tanh")) {
    spec.activation = Activation::gelu_tanh;
  } else {
    config.problem(
        "LW001", config.is_set("model.activation_func") ? "model.activation_func" : "model.gated_linear_unit",
        fmt::format("the runtime has no {}activation `{}`", gated ? "gated " : "", name),
        "use `silu` with `model.gated_linear_unit = true`, or `gelu` without");
  }
}

void bind_positions(EffectiveConfig& config, ModelSpec& spec) {
  const std::string kind = config.text("model.position_embedding_type", "learned_absolute");
  spec.rotary_base = config.number("model.rotary_base", 1, 1e12, 10000);
  const double percent = config.number("model.rotary_percent", 0, 1, 1);
  spec.rotary_interleaved = config.boolean("model.rotary_interleaved", false);
  if (kind == "rope") {
    spec.positions = Positions::rope;
    spec.rotary_dim = static_cast<std::int64_t>(static_cast<double>(spec.dims.head_dim) * percent);
    if (spec.rotary_dim < 2 || spec.rotary_dim % 2 != 0) {
      config.problem(
          "LW003",
          config.is_set("model.rotary_percent") ? "model.rotary_percent" : "model.position_embedding_type",
          fmt::format("{} of the {} columns of a head would be rotated; rotation needs pairs",
                      spec.rotary_dim, spec.dims.head_dim));
    }
  } else if (kind == "learned_absolute") {
    spec.positions = Positions::learned;
  } else if (kind == "none") {
    spec.positions = Positions::none;
  } else {
    config.problem("LW001", "model.position_embedding_type",
                   fmt::format("the runtime has no position embedding `{}`", kind),
                   "use `rope`, `learned_absolute` or `none`");
  }
}

}  // namespace

void bind_architecture(EffectiveConfig& config, ModelSpec& spec) {
  bind_dims(config, spec);
  bind_vocabulary(config, spec);
  bind_norm(config, spec);
  bind_activation(config, spec);
  bind_positions(config, spec);
  // A probability of 1 would drop everything and divide by zero.
  constexpr double kMostDropout = 0.99;
  spec.hidden_dropout = config.number("model.hidden_dropout", 0, kMostDropout, 0.1);
  spec.attention_dropout = config.number("model.attention_dropout", 0, kMostDropout, 0.1);
}

}  // namespace capstan::plan
