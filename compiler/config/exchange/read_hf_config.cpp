// Hugging Face config.json as the model section; see hf_fields.h.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/config/exchange/hf_fields.h"
#include "compiler/config/exchange/json_fault.h"
#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"

namespace capstan {
namespace {

constexpr std::int64_t kMostModelLayers = 10000;
constexpr std::int64_t kMaxSharedExperts = 1000;
constexpr std::int64_t kMaxExpertSize = std::int64_t{1} << 40;  // their product is far from an overflow

class HfReader {
 public:
  explicit HfReader(const ReadContext& context)
      : context_(context),
        builder_(OriginKind::file, context.file),
        implied_(OriginKind::imported, context.file) {}

  std::vector<Layer> run(const SyntaxNode& tree) {
    const SyntaxNode* text_model = find(tree, "text_config");
    const SyntaxNode& model =
        text_model != nullptr && text_model->kind == SyntaxNode::Kind::table ? *text_model : tree;
    model_ = &model;
    std::string type = text_of("model_type");
    if (type.empty() && &model != &tree) {
      const SyntaxNode* outer = find(tree, "model_type");
      if (outer != nullptr && outer->scalar.kind() == Value::Kind::string) type = outer->scalar.string();
    }
    family_ = type;
    report_unknown_family(tree);
    for (const auto& [path, value] : hf_family(type)) {
      if (knows(context_.view, path)) implied_.set(path, Span{}, value, Span{});
    }
    for (const SyntaxEntry& entry : model.entries) take(entry);
    if (&model != &tree) {
      for (const SyntaxEntry& entry : tree.entries) {
        if (entry.key == "text_config") continue;
        // Fields of the whole model count where the text model does not say its own.
        if (find(model, entry.key) == nullptr) take(entry);
      }
    }
    open_absent_fields(tree);
    std::vector<Layer> layers;
    layers.push_back(implied_.take());
    layers.push_back(builder_.take());
    return layers;
  }

 private:
  const SyntaxEntry* entry_of(const SyntaxNode& tree, std::string_view field) const {
    for (const SyntaxNode* const table : {model_, &tree}) {
      for (const SyntaxEntry& entry : table->entries) {
        if (entry.key == field) return &entry;
      }
    }
    return nullptr;
  }

  /// A field that the config leaves out has the default of its family, which is not the framework's.
  void open_absent_fields(const SyntaxNode& tree) {
    std::string keys;
    const SyntaxEntry* const type = entry_of(tree, "model_type");
    const Span place = type != nullptr ? type->value.span : Span{context_.file, 0, 0};
    for (const std::string_view path : hf_keys_with_own_defaults(family_)) {
      if (!knows(context_.view, path) || builder_.has(path) || implied_.has(path)) continue;
      keys += fmt::format("{}`{}`", keys.empty() ? "" : ", ", path);
      builder_.set_unknown(path, place, place);
      context_.record.not_literal.push_back(
          {std::string(path), "no field states it, and the default of the family is not known", place});
    }
    if (keys.empty()) return;
    context_.sink.problem(
        "EX004",
        fmt::format("what no field states here has the default of `{}`, which is not known; open: {}",
                    family_, keys),
        place);
  }

  std::string text_of(std::string_view field) const {
    const SyntaxNode* node = find(*model_, field);
    return node != nullptr && node->scalar.kind() == Value::Kind::string ? node->scalar.string() : "";
  }
  std::optional<std::int64_t> integer_of(std::string_view field) const {
    const SyntaxNode* node = find(*model_, field);
    if (node == nullptr || node->scalar.kind() != Value::Kind::integer) return std::nullopt;
    return node->scalar.integer();
  }

  /// What a family implies is unknown then, so that no default of a model's key can be counted on.
  void report_unknown_family(const SyntaxNode& tree) {
    const std::vector<std::string>& known = hf_families();
    if (std::find(known.begin(), known.end(), family_) != known.end()) return;
    std::string names;
    for (const std::string& name : known) names += (names.empty() ? "`" : ", `") + name + "`";
    const SyntaxEntry* const type = entry_of(tree, "model_type");
    const std::string written =
        type == nullptr ? std::string() : std::string(context_.sources.text(type->value.span));
    const std::string which = type == nullptr ? "no `model_type` names a family that is known"
                              : family_.empty()
                                  ? fmt::format("`model_type` is `{}`, which names no family", written)
                                  : fmt::format("`{}` is no family that is known", family_);
    const Span place = type != nullptr ? type->value.span : Span{context_.file, 0, 0};
    context_.sink.problem(
        "EX001",
        fmt::format("{}; its fields are read, and keys of the model that they do not set are open. Known: {}",
                    which, names),
        place);
    context_.record.unknown.push_back({"model_type", which, place});
    context_.record.open_sections.emplace_back("model");
  }

  void ignore(const SyntaxEntry& entry, std::string why) {
    context_.record.irrelevant.push_back({entry.key, std::move(why), entry.key_span});
  }
  /// Sets a key; says so when the stack does not have it.
  void set(const SyntaxEntry& entry, std::string_view path, Value value) {
    if (!knows(context_.view, path))
      return ignore(entry, fmt::format("{} has no `{}`", context_.view.stack().name, path));
    ++context_.record.mapped;
    builder_.set(path, entry.key_span, std::move(value), entry.value.span);
  }
  void imply(const SyntaxEntry& entry, std::string_view path, Value value) {
    if (knows(context_.view, path)) builder_.set(path, entry.key_span, std::move(value), entry.value.span);
  }

  void take(const SyntaxEntry& entry) {
    ++context_.record.total;
    const std::string& field = entry.key;
    if (field == "hidden_act" || field == "hidden_activation" || field == "activation_function")
      return take_activation(entry);
    if (field == "torch_dtype" || field == "dtype") return take_dtype(entry);
    if (field == "rope_scaling" || field == "rope_parameters") return take_rope(entry);
    if (field == "sliding_window") return take_window(entry);
    if (field == "first_k_dense_replace") return take_dense_layers(entry);
    if (field == "n_shared_experts") return take_shared_experts(entry);
    if (is_hf_bookkeeping(field) || field.ends_with("_token_id"))
      return ignore(entry, "no part of the model section");
    const std::string_view path = hf_key(field);
    if (path.empty()) {
      const bool off = entry.value.kind == SyntaxNode::Kind::scalar &&
                       (entry.value.scalar.is_none() || entry.value.scalar == Value(false));
      if (off) return ignore(entry, "switched off, and no part of the model section");
      report_unknown(context_, field, fmt::format("no key is known for the field `{}`", field),
                     entry.key_span);
      return;
    }
    if (entry.value.kind != SyntaxNode::Kind::scalar || entry.value.scalar.is_none()) {
      if (entry.value.kind == SyntaxNode::Kind::scalar) return ignore(entry, "not set");
      report_not_literal(context_, field, "it is no plain value", entry.value.span);
      builder_.set_unknown(path, entry.key_span, entry.value.span);
      return;
    }
    if (field == "num_nextn_predict_layers" && entry.value.scalar == Value(0))
      return ignore(entry, "not set");
    set(entry, path, entry.value.scalar);
    if (field == "rms_norm_eps") imply(entry, "model.normalization", Value("RMSNorm"));
    if (field == "rope_theta" && family_.empty())
      imply(entry, "model.position_embedding_type", Value("rope"));
    if (field == "kv_lora_rank") imply(entry, "model.multi_latent_attention", Value(true));
    // Models whose layers are all experts name the size of one expert as that of the layer.
    if (field == "intermediate_size" && (family_ == "mixtral" || family_ == "olmoe" || family_ == "gpt_oss"))
      imply(entry, "model.moe_ffn_hidden_size", entry.value.scalar);
  }

  void take_activation(const SyntaxEntry& entry) {
    const std::string name =
        entry.value.scalar.kind() == Value::Kind::string ? entry.value.scalar.string() : "";
    const std::string_view function = hf_activation(name);
    if (entry.value.kind == SyntaxNode::Kind::scalar && entry.value.scalar.is_none())
      return ignore(entry, "not set");
    if (family_.starts_with("gemma") && name == "gelu")  // the bridge takes the tanh form for both names
      return set(entry, "model.activation_func", Value("fast_gelu"));
    if (family_ == "gpt_oss") return set(entry, "model.activation_func", Value("quick_gelu"));
    if (function.empty()) {
      ++context_.record.mapped;
      report_not_literal(context_, entry.key,
                         fmt::format("no activation function of the framework is named `{}`", name),
                         entry.value.span);
      builder_.set_unknown("model.activation_func", entry.key_span, entry.value.span);
      return;
    }
    set(entry, "model.activation_func", Value(std::string(function)));
    if (function == "F.silu") imply(entry, "model.gated_linear_unit", Value(true));
  }

  void take_dtype(const SyntaxEntry& entry) {
    std::string name = entry.value.scalar.kind() == Value::Kind::string ? entry.value.scalar.string() : "";
    if (name.starts_with("torch.")) name = name.substr(6);
    if (name == "bfloat16") {
      set(entry, "model.params_dtype", Value("bf16"));
      imply(entry, "model.bf16", Value(true));
    } else if (name == "float16" || name == "half") {
      set(entry, "model.params_dtype", Value("fp16"));
      imply(entry, "model.fp16", Value(true));
    } else if (name == "float32" || name == "float") {
      set(entry, "model.params_dtype", Value("fp32"));
    } else {
      ++context_.record.mapped;
      report_not_literal(context_, entry.key, fmt::format("`{}` is no type of parameters", name),
                         entry.value.span);
      builder_.set_unknown("model.params_dtype", entry.key_span, entry.value.span);
    }
  }

  void take_rope(const SyntaxEntry& entry) {
    if (entry.value.kind != SyntaxNode::Kind::table) return ignore(entry, "not set");
    std::string type;
    for (const char* name : {"rope_type", "type"}) {
      const SyntaxNode* node = find(entry.value, name);
      if (type.empty() && node != nullptr && node->scalar.kind() == Value::Kind::string)
        type = node->scalar.string();
    }
    if (const SyntaxNode* theta = find(entry.value, "rope_theta");
        theta != nullptr && theta->scalar.is_number())
      imply(entry, "model.rotary_base", theta->scalar);
    if (type.empty() || type == "default") return set(entry, "model.position_embedding_type", Value("rope"));
    if (type == "llama3") {
      set(entry, "model.rope_scaling", Value(true));
      const SyntaxNode* factor = find(entry.value, "factor");
      imply(entry, "model.rope_scaling_factor",
            factor != nullptr && factor->scalar.is_number() ? factor->scalar : Value(8.0));
      return;
    }
    if (type == "yarn") {
      const bool latent = find(*model_, "kv_lora_rank") != nullptr;
      ++context_.record.mapped;
      if (!latent) imply(entry, "model.position_embedding_type", Value("yarn"));
      for (const SyntaxEntry& part : entry.value.entries) {
        const std::string name = part.key == "factor" ? "rotary_scaling_factor" : part.key;
        const bool known = name == "rotary_scaling_factor" || name == "original_max_position_embeddings" ||
                           name == "beta_fast" || name == "beta_slow" || name == "mscale" ||
                           name == "mscale_all_dim";
        const std::string path = (latent ? "model." : "model.yarn_") + name;
        if (known && part.value.scalar.is_number() && knows(context_.view, path))
          builder_.set(path, part.key_span, part.value.scalar, part.value.span);
        else if (part.key == "truncate" && !latent)
          imply(part, "model.yarn_correction_range_round_to_int", part.value.scalar);
      }
      return;
    }
    ++context_.record.mapped;
    report_not_literal(context_, entry.key, fmt::format("no scaling of the framework is named `{}`", type),
                       entry.value.span);
    builder_.set_unknown("model.position_embedding_type", entry.key_span, entry.value.span);
  }

  void take_window(const SyntaxEntry& entry) {
    const SyntaxNode* use = find(*model_, "use_sliding_window");
    if (entry.value.scalar.kind() != Value::Kind::integer || (use != nullptr && use->scalar == Value(false)))
      return ignore(entry, "not set");
    const std::int64_t window = entry.value.scalar.integer();
    if (window < 1) return ignore(entry, "not set");
    set(entry, "model.window_size", Value(Value::List{Value(window - 1), Value(0)}));
    if (family_ == "mistral") imply(entry, "model.cp_comm_type", Value("a2a"));
  }

  /// The first layers are dense: [0, 0, 0, 1, ...].
  void take_dense_layers(const SyntaxEntry& entry) {
    const auto layers = integer_of("num_hidden_layers");
    const auto dense = integer_of("first_k_dense_replace");
    if (!layers || !dense || *dense < 0 || *layers < *dense || *layers > kMostModelLayers) {
      report_not_literal(context_, entry.key, "it does not fit the number of layers", entry.value.span);
      builder_.set_unknown("model.moe_layer_freq", entry.key_span, entry.value.span);
      return;
    }
    Value::List pattern;
    for (std::int64_t layer = 0; layer < *layers; ++layer) pattern.emplace_back(layer < *dense ? 0 : 1);
    set(entry, "model.moe_layer_freq", Value(std::move(pattern)));
  }

  void take_shared_experts(const SyntaxEntry& entry) {
    constexpr std::string_view kKey = "model.moe_shared_expert_intermediate_size";
    const Value& given = entry.value.scalar;
    if (entry.value.kind == SyntaxNode::Kind::scalar && (given.is_none() || given == Value(0)))
      return ignore(entry, "not set");
    const auto size = integer_of("moe_intermediate_size");
    const bool countable =
        given.kind() == Value::Kind::integer && given.integer() > 0 && given.integer() <= kMaxSharedExperts;
    if (!countable || !size || *size < 0 || *size > kMaxExpertSize) {
      ++context_.record.mapped;
      report_not_literal(context_, entry.key,
                         countable ? "`moe_intermediate_size` states no size of an expert"
                                   : fmt::format("it is no number from 0 to {}", kMaxSharedExperts),
                         entry.value.span);
      builder_.set_unknown(kKey, entry.key_span, entry.value.span);
      return;
    }
    set(entry, kKey, Value(given.integer() * *size));
  }

  const ReadContext& context_;
  LayerBuilder builder_, implied_;
  const SyntaxNode* model_ = nullptr;
  std::string family_;
};

}  // namespace

std::optional<std::vector<Layer>> read_hf_config(const ReadContext& context) {
  if (const auto fault = find_json_fault(context.sources[context.file].bytes())) {
    context.sink.problem("SY007", fault->message, Span{context.file, fault->begin, fault->end});
    return std::nullopt;
  }
  const auto tree = read_yaml(context);  // JSON is read as YAML, which keeps places
  if (!tree) return std::nullopt;
  const bool is_model =
      tree->kind == SyntaxNode::Kind::table &&
      std::any_of(tree->entries.begin(), tree->entries.end(), [](const SyntaxEntry& entry) {
        return entry.key == "hidden_size" || entry.key == "model_type" || entry.key == "n_embd";
      });
  if (!is_model) {
    const auto end =
        static_cast<std::uint32_t>(std::min<std::size_t>(1, context.sources[context.file].bytes().size()));
    context.sink.problem(
        "EX005", "this is no Hugging Face model config: it has neither `model_type` nor `hidden_size`",
        Span{context.file, 0, end});
    return std::nullopt;
  }
  return HfReader(context).run(*tree);
}

}  // namespace capstan
