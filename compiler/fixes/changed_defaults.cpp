#include "compiler/fixes/changed_defaults.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/config/asks_for_nothing.h"
#include "compiler/fixes/capture_spelling.h"

namespace capstan {
namespace {

/// Keys that begin so matter only where another key says so.
struct Gate {
  std::string_view prefix;
  std::string_view key;
  std::string_view word;  ///< the key holds it; empty: the key holds anything but none, false, 0 and "none"
};

constexpr std::array kGates = {
    Gate{"model.moe_deepep_", "model.moe_flex_dispatcher_backend", "deepep"},
    Gate{"model.moe_deepep_", "model.moe_token_dispatcher_type", "flex"},
    Gate{"model.moe_hybridep_", "model.moe_flex_dispatcher_backend", "hybridep"},
    Gate{"model.moe_hybridep_", "model.moe_token_dispatcher_type", "flex"},
    Gate{"model.moe_", "model.num_moe_experts", ""},
    Gate{"model.mtp_", "model.mtp_num_layers", ""},
    Gate{"model.yarn_", "model.position_embedding_type", "yarn"},
    Gate{"model.rotary_scaling_factor", "model.multi_latent_attention", ""},
    Gate{"model.cpu_offloading_", "model.cpu_offloading", ""},
    Gate{"optimizer.muon_", "optimizer.optimizer", "muon"},
    Gate{"optimizer.soap_", "optimizer.optimizer", "soap"},
    Gate{"profiling.memory_snapshot_path", "profiling.record_memory_history", ""},
};

/// Families of keys that a config uses all or nothing of: one matters where another one is set.
constexpr std::array<std::string_view, 14> kFamilies = {
    "model.inference_", "model.linear_",  "model.image_",   "model.img_",          "model.video_",
    "model.vision_",    "model.audio_",   "model.hf_",      "model.language_",     "model.pretrained_",
    "arguments.rl_",    "dataset.image_", "dataset.prompt", "arguments.inference_"};

/// Read by nothing in any release, whatever its default.
constexpr std::string_view kWithoutEffect = "model.async_tensor_model_parallel_allreduce";

bool says_nothing(const Value& value) {
  return asks_for_nothing(value) || value == Value("none");
}

/// Of which only none, false and emptiness are the same, not 0.
bool same_meaning(const Value& a, const Value& b) {
  if (a == b) return true;
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return !a.is_number() && !b.is_number() && says_nothing(a) && says_nothing(b);
}

class DefaultComparison {
 public:
  DefaultComparison(const Config& config, const SchemaView& from, const SchemaView& to)
      : config_(config), from_(from), to_(to) {}

  std::vector<ChangedDefault> run() const {
    std::vector<ChangedDefault> out;
    const Schema& schema = to_.schema();
    for (const KeyInfo& key : schema.keys()) {
      // Where a key has two names, the newer one's default holds.
      if (!is_native(key, from_.stack(), schema) || key.path.ends_with(".*")) continue;
      const KeyInfo* later = name_in_new_release(key);
      if (later == nullptr || is_set(key.path) || is_set(later->path)) continue;
      const KeySpec* before = literal(from_, key.path);
      const KeySpec* after = literal(to_, later->path);
      if (before == nullptr || after == nullptr || same_meaning(before->default_value, after->default_value))
        continue;
      if (section_of(key.path) == "target" || asks_for_whole_layer(key.path) || !matters(later->path))
        continue;
      out.push_back({later->path, before->default_value, after->default_value});
    }
    std::sort(out.begin(), out.end(),
              [](const ChangedDefault& a, const ChangedDefault& b) { return a.path < b.path; });
    return out;
  }

 private:
  /// Under this name or an older one of it, which a release may take beside it.
  bool is_set(std::string_view path) const {
    if (config_.find(path) != nullptr) return true;
    return std::any_of(config_.settings.begin(), config_.settings.end(), [&](const auto& setting) {
      const KeyInfo* key = to_.schema().find(setting.first);
      return key != nullptr && key->renamed_to == path;
    });
  }

  const KeyInfo* name_in_new_release(const KeyInfo& key) const {
    const Schema& schema = to_.schema();
    const auto native = [&](const KeyInfo& other) { return is_native(other, to_.stack(), schema); };
    if (native(key)) return &key;
    if (const KeyInfo* later = schema.find(key.renamed_to); later != nullptr && native(*later)) return later;
    for (const KeyInfo& other : schema.keys()) {
      if (other.renamed_to == key.path && native(other)) return &other;
    }
    return nullptr;
  }

  static const KeySpec* literal(const SchemaView& view, std::string_view path) {
    const KeySpec* spec = view.find(path).spec;
    return spec != nullptr && spec->has_default && spec->default_text.empty() ? spec : nullptr;
  }

  /// No list, an empty one and `full` all capture the whole layer.
  static bool asks_for_whole_layer(std::string_view path) {
    return path != "model.cuda_graph_impl" && asks_for_capture(path);
  }

  Value held(std::string_view path) const {
    if (const Setting* setting = config_.find(path)) return setting->value;
    const KeySpec* spec = literal(from_, path);
    return spec == nullptr ? Value() : spec->default_value;
  }

  bool any_set(std::string_view prefix) const {
    const auto found = config_.settings.lower_bound(prefix);
    return found != config_.settings.end() && found->first.starts_with(prefix);
  }

  bool captures() const {
    return !says_nothing(held("model.cuda_graph_impl")) || held("model.enable_cuda_graph") == Value(true) ||
           held("model.external_cuda_graph") == Value(true);
  }

  /// Pools are shared between the graphs of the core's own implementation.
  bool captures_locally() const {
    return held("model.cuda_graph_impl") == Value("local") || held("model.enable_cuda_graph") == Value(true);
  }

  bool matters(std::string_view path) const {
    if (path == kWithoutEffect) return false;
    if (path == "model.cuda_graph_use_single_mempool") return captures_locally();
    if (path.starts_with("model.cuda_graph_")) return captures();
    for (const Gate& gate : kGates) {
      if (!path.starts_with(gate.prefix)) continue;
      const Value value = held(gate.key);
      const bool open = gate.word.empty() ? !says_nothing(value)
                                          : value.kind() == Value::Kind::string &&
                                                value.string().find(gate.word) != std::string::npos;
      if (!open) return false;
    }
    for (const std::string_view family : kFamilies) {
      if (path.starts_with(family) && !any_set(family)) return false;
    }
    // What a job may have or not: data of another kind, tools. The model and its training are always there.
    const std::string_view section = section_of(path);
    // Of another front-end that has its precision, its data and its tools in other places.
    const bool own_only = section == "mixed_precision" || section == "checkpoint" || section == "dataset";
    if (own_only && from_.stack().frontend != to_.stack().frontend) return false;
    return section == "model" || section == "optimizer" || section == "train" || section == "validation" ||
           config_.sections.contains(section);
  }

  const Config& config_;
  const SchemaView& from_;
  const SchemaView& to_;
};

}  // namespace

std::vector<ChangedDefault> changed_defaults(const Config& config, const SchemaView& from,
                                             const SchemaView& to) {
  return DefaultComparison(config, from, to).run();
}

}  // namespace capstan
