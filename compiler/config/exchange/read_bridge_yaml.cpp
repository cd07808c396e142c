// Megatron Bridge run_config.yaml: sections of the config container, objects as `_target_` entries.
#include <fmt/format.h>

#include <map>
#include <string>

#include "compiler/config/exchange/interpolation.h"
#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"
#include "compiler/config/exchange/section_class.h"
#include "compiler/config/exchange/yaml_float.h"

namespace capstan {
namespace {

/// Members of enums that run configs hold by number (megatron/core/transformer/enums.py, releases 0.16 to
/// 0.19).
const std::map<std::string, std::map<std::int64_t, std::string>>& enum_members() {
  static const std::map<std::string, std::map<std::int64_t, std::string>> members = {
      {"AttnBackend", {{1, "flash"}, {2, "fused"}, {3, "unfused"}, {4, "local"}, {5, "auto"}}},
      {"CudaGraphModule",
       {{1, "attn"}, {2, "mlp"}, {3, "moe"}, {4, "moe_router"}, {5, "moe_preprocess"}, {6, "mamba"}}},
      {"CudaGraphScope",
       {{1, "full_iteration"},
        {2, "attn"},
        {3, "mlp"},
        {4, "moe"},
        {5, "moe_router"},
        {6, "moe_preprocess"},
        {7, "mamba"},
        {8, "full_iteration_inference"}}},
      {"InferenceCudaGraphScope", {{1, "none"}, {2, "layer"}, {3, "block"}}}};
  return members;
}

std::string last_name(const std::string& dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

/// An object entry as a plain value: dtypes, functions and enum members by name; nothing for other objects.
std::optional<Value> plain_object(const SyntaxNode& node) {
  const SyntaxNode* target = find(node, "_target_");
  if (target == nullptr || target->scalar.kind() != Value::Kind::string) return std::nullopt;
  const std::string& name = target->scalar.string();
  if (name == "torch.bfloat16") return Value("bf16");
  if (name == "torch.float16" || name == "torch.half") return Value("fp16");
  if (name == "torch.float32" || name == "torch.float") return Value("fp32");
  if (name.starts_with("torch.nn.functional.")) return Value("F." + last_name(name));
  // Names of other packages may be those of the framework and mean something else.
  if (!name.starts_with("megatron.") && !name.starts_with("torch.")) return std::nullopt;
  const auto members = enum_members().find(last_name(name));
  const SyntaxNode* arguments = find(node, "_args_");
  if (members != enum_members().end() && arguments != nullptr && arguments->items.size() == 1) {
    const Value& member = arguments->items.front().scalar;
    if (member.kind() == Value::Kind::string) return member;
    if (member.kind() == Value::Kind::integer) {
      if (const auto found = members->second.find(member.integer()); found != members->second.end())
        return Value(found->second);
    }
    return std::nullopt;
  }
  const SyntaxNode* call = find(node, "_call_");
  if (call != nullptr && call->scalar == Value(false))
    return Value(last_name(name));  // a function or class by its name
  return std::nullopt;
}

class BridgeYamlReader {
 public:
  explicit BridgeYamlReader(const ReadContext& context)
      : context_(context), builder_(OriginKind::file, context.file) {}

  std::vector<Layer> run(const SyntaxNode& tree) {
    by_safe_load_ = find(tree, "_target_") != nullptr;
    for (const SyntaxEntry& section : tree.entries) {
      if (section.key == "_target_") continue;
      if (section.value.kind != SyntaxNode::Kind::table) {
        if (section.value.kind == SyntaxNode::Kind::scalar && section.value.scalar.is_none())
          continue;  // an absent section
        ++context_.record.total;
        if (section.key == "mixed_precision" && section.value.scalar.kind() == Value::Kind::string) {
          ++context_.record.mapped;
          builder_.set("mixed_precision.recipe", section.key_span, section.value);
        } else if (context_.view.has_section(section.key)) {
          report_refused(context_, "EX002", section.key,
                         fmt::format("the section `{}` must be a mapping of keys", section.key),
                         section.value.span.exists() ? section.value.span : section.key_span);
          context_.record.open_sections.push_back(section.key);
        } else {
          report_unknown(context_, section.key, fmt::format("`{}` is no section of the config", section.key),
                         section.key_span);
        }
        continue;
      }
      if (section.key == "env_vars") {
        for (const SyntaxEntry& entry : section.value.entries) take_variable(entry);
        continue;
      }
      const bool native = section.key == "target" || section.key == "cluster" || section.key == "execute" ||
                          section.key == "env";
      if (!native && !context_.view.has_section(section.key)) {
        report_unknown(context_, section.key,
                       fmt::format("`{}` is no section that {} has", section.key, context_.view.stack().name),
                       section.key_span);
        continue;
      }
      for (const SyntaxEntry& entry : section.value.entries) set(section.key, entry);
    }
    LayerBuilder frontend(OriginKind::imported, context_.file);
    frontend.set("target.frontend", Span{}, Value("bridge"), Span{});
    std::vector<Layer> layers;
    layers.push_back(frontend.take());
    layers.push_back(builder_.take());
    return layers;
  }

 private:
  void take_variable(const SyntaxEntry& entry) {
    ++context_.record.total;
    ++context_.record.mapped;
    SyntaxNode value = entry.value;
    if (value.scalar.kind() == Value::Kind::string) {
      if (auto text = without_interpolation(value.scalar.string())) {
        value.scalar = Value(std::move(*text));
      } else {
        value.kind = SyntaxNode::Kind::unsupported;
        value.what = "OmegaConf fills in what stands in `${}`";
      }
    }
    set_variable(context_, builder_, entry.key, entry.key_span, value);
  }

  /// A whole run config states every field of its classes; a file of overrides leaves the rest to them.
  void take_class(const std::string& section, const std::string& path, const SyntaxEntry& entry) {
    context_.record.irrelevant.push_back({path, "the class of the section", entry.key_span});
    const std::string name =
        entry.value.scalar.kind() == Value::Kind::string ? entry.value.scalar.string() : "";
    if (by_safe_load_ || has_defaults_of_section(section, name)) return;
    report_not_literal(
        context_, section,
        fmt::format("what `{}` sets is not known; keys of the section that are not set here are open", name),
        entry.value.span);
    context_.record.open_sections.push_back(section);
  }

  void set(const std::string& section, const SyntaxEntry& entry) {
    const std::string path = section + "." + entry.key;
    if (entry.key == "_target_") return take_class(section, path, entry);
    if (section == "env") return take_variable(entry);
    ++context_.record.total;
    if (!knows(context_.view, path)) {
      report_unknown(context_, path,
                     fmt::format("`{}` is no key that {} has", path, context_.view.stack().name),
                     entry.key_span);
      return;
    }
    ++context_.record.mapped;
    if (const SyntaxNode* const filled = interpolation(entry.value)) {
      report_not_literal(context_, path, "OmegaConf fills in what stands in `${}`", filled->span);
      builder_.set_unknown(path, entry.key_span, entry.value.span);
      return;
    }
    const KeySpec* const spec = context_.view.find(path).spec;
    if (by_safe_load_ && spec != nullptr && !spec->type.string && !spec->type.any)
      report_numbers(path, entry.value);
    SyntaxNode value = entry.value;
    if (by_safe_load_ && spec != nullptr && (spec->type.string || spec->type.any)) take_texts(value);
    if (!simplify(value)) {
      report_not_literal(context_, path, "it is an object that only Python can build", entry.value.span);
      builder_.set_unknown(path, entry.key_span, entry.value.span);
      return;
    }
    builder_.set(path, entry.key_span, std::move(value));
  }

  /// The first text that OmegaConf fills in; null if there is none.
  static const SyntaxNode* interpolation(const SyntaxNode& node) {
    if (node.scalar.kind() == Value::Kind::string && !without_interpolation(node.scalar.string()))
      return &node;
    for (const SyntaxNode& item : node.items) {
      if (const SyntaxNode* const found = interpolation(item)) return found;
    }
    for (const SyntaxEntry& entry : node.entries) {
      if (const SyntaxNode* const found = interpolation(entry.value)) return found;
    }
    return nullptr;
  }

  /// A whole run config goes through yaml.safe_load, which takes some numbers for text (Megatron-Bridge
  /// src/megatron/bridge/training/utils/config_utils.py from_yaml, training/utils/checkpoint_utils.py); files
  /// of overrides go through OmegaConf (training/utils/omegaconf_utils.py), which does not.
  void report_numbers(const std::string& path, const SyntaxNode& node) {
    const std::string_view text = context_.sources.text(node.span);
    if (node.scalar.is_number() && is_text_for_safe_load(text)) {
      context_.sink.problem(
          "EX002",
          fmt::format(
              "`{}` is `{}`, which PyYAML takes for text; write a point and a sign of the exponent: `{}`",
              path, text, yaml_float(node.scalar.number())),
          node.span);
    }
    for (const SyntaxNode& item : node.items) report_numbers(path, item);
  }

  /// Numbers that PyYAML takes for text are that text, where the key takes one.
  void take_texts(SyntaxNode& node) const {
    const std::string_view text = context_.sources.text(node.span);
    if (node.kind == SyntaxNode::Kind::scalar && node.scalar.is_number() && is_text_for_safe_load(text))
      node.scalar = Value(std::string(text));
    for (SyntaxNode& item : node.items) take_texts(item);
  }

  /// Replaces object entries by plain values; false if one has none.
  static bool simplify(SyntaxNode& node) {
    if (node.kind == SyntaxNode::Kind::table && find(node, "_target_") != nullptr) {
      const auto plain = plain_object(node);
      if (!plain) return false;
      SyntaxNode scalar;
      scalar.scalar = *plain;
      scalar.span = node.span;
      node = std::move(scalar);
      return true;
    }
    if (node.scalar.kind() == Value::Kind::string) {
      if (auto text = without_interpolation(node.scalar.string())) node.scalar = Value(std::move(*text));
    }
    for (SyntaxNode& item : node.items) {
      if (!simplify(item)) return false;
    }
    for (SyntaxEntry& entry : node.entries) {
      if (!simplify(entry.value)) return false;
    }
    return node.kind != SyntaxNode::Kind::unsupported;
  }

  const ReadContext& context_;
  LayerBuilder builder_;
  bool by_safe_load_ = false;  ///< a run config, not a file of overrides
};

}  // namespace

std::optional<std::vector<Layer>> read_bridge_yaml(const ReadContext& context) {
  const auto tree = read_yaml(context, YamlScalars::python);
  if (!tree) return std::nullopt;
  if (tree->kind != SyntaxNode::Kind::table) {
    context.sink.problem("EX005", "a config is a mapping of sections", tree->span);
    return std::nullopt;
  }
  return BridgeYamlReader(context).run(*tree);
}

}  // namespace capstan
