#include "compiler/facts/derive.h"

#include <string_view>
#include <unordered_set>
#include <utility>

#include "compiler/facts/gpu.h"

namespace capstan {
namespace {

constexpr std::string_view kTargetSection = "target";
constexpr std::string_view kClusterSection = "cluster";

void make_known(Fact& fact, Value value) {
  fact.state = Fact::State::known;
  fact.value = std::move(value);
}

/// Functions are compared by their own name: "F.gelu" and "torch.nn.functional.gelu" are "gelu".
Value callable_name(const std::string& text) {
  const auto dot = text.rfind('.');
  return Value(dot == std::string::npos ? text : text.substr(dot + 1));
}

class Deriver {
 public:
  Deriver(const Config& config, const SchemaView& schema) : config_(config), schema_(schema) {
    unusable_.insert(config.broken.begin(), config.broken.end());
    unusable_.insert(config.open.begin(), config.open.end());
  }

  Fact derive(const std::string& name) const {
    Fact fact;
    fact.setting = config_.find(name);
    const std::string_view section = section_of(name);
    if (section == kTargetSection)
      derive_target(std::string_view(name).substr(section.size() + 1), fact);
    else if (section == kClusterSection)
      derive_cluster(std::string_view(name).substr(section.size() + 1), fact);
    else if (section == kEnvironmentSection)
      derive_variable(fact);
    else
      derive_key(name, fact);
    if (fact.setting != nullptr) fact.set = true;
    return fact;
  }

 private:
  /// The setting counts: it is there, well-formed and not open.
  bool usable(const Setting* setting) const {
    return setting != nullptr && !unusable_.contains(setting->path);
  }

  void derive_variable(Fact& fact) const {
    if (fact.setting == nullptr)
      make_known(fact, Value());
    else if (usable(fact.setting))
      make_known(fact, fact.setting->value);
  }

  void derive_key(const std::string& name, Fact& fact) const {
    const KeyView view = schema_.find(name);
    if (view.info == nullptr) {
      fact.setting = nullptr;
      make_known(fact, Value());  // a fact that rules define: none until a rule gives it a value
      return;
    }
    if (view.spec == nullptr) {
      make_known(fact, Value());  // the release has no such attribute
      return;
    }
    if (fact.setting != nullptr) {
      if (!usable(fact.setting)) return;
      const Value& value = fact.setting->value;
      make_known(fact, view.spec->type.callable && value.kind() == Value::Kind::string
                           ? callable_name(value.string())
                           : value);
    } else if (unusable_.contains(name)) {
      return;  // not set here, but perhaps by what the text builds on
    } else if (view.spec->has_default) {
      const Value& value = view.spec->default_value;
      make_known(fact, view.spec->type.callable && value.kind() == Value::Kind::string
                           ? callable_name(value.string())
                           : value);
    } else if (view.spec->type.callable && !view.spec->default_text.empty()) {
      make_known(fact, callable_name(view.spec->default_text));
    }
  }

  void derive_target(std::string_view name, Fact& fact) const {
    const Stack& stack = schema_.stack();
    if (name == "frontend") return make_known(fact, Value(stack.frontend));
    if (name == "stack") return make_known(fact, Value(stack.name));
    if (name == "gpu") {
      if (const Setting* gpu = usable_text("target.gpu"))
        make_known(fact, Value(gpu_model(gpu->value.string())));
      return;
    }
    if (name == "compute_capability") return derive_compute_capability(fact);
    if (name == "num_gpus") {
      if (const auto number = usable_integer("target.num_gpus")) make_known(fact, Value(*number));
      return;
    }
    if (const Version* version = stack.version_of(name)) {
      fact.state = Fact::State::known;
      fact.is_version = true;
      fact.version = *version;
      fact.value = Value(to_text(*version));
    }
  }

  void derive_compute_capability(Fact& fact) const {
    if (const Setting* stated = config_.find("target.compute_capability");
        usable(stated) && !stated->value.is_none()) {
      if (const auto capability = read_compute_capability(stated->value))
        make_known(fact, Value(*capability));
      return;
    }
    if (const Setting* gpu = usable_text("target.gpu")) {
      if (const auto capability = compute_capability_of(gpu->value.string())) {
        make_known(fact, Value(*capability));
        fact.setting = gpu;
      }
    }
  }

  void derive_cluster(std::string_view name, Fact& fact) const {
    if (usable(fact.setting) && !fact.setting->value.is_none()) return make_known(fact, fact.setting->value);
    if (name != "world_size" || fact.setting != nullptr) return;
    const auto nodes = usable_integer("cluster.nodes");
    const auto per_node = usable_integer("cluster.gpus_per_node");
    constexpr std::int64_t kMost = 1 << 24;  // no overflow below, and no cluster above
    if (nodes && per_node && *nodes > 0 && *per_node > 0 && *nodes <= kMost && *per_node <= kMost) {
      make_known(fact, Value(*nodes * *per_node));
      fact.setting = config_.find("cluster.nodes");
    } else if (const auto gpus = usable_integer("target.num_gpus")) {
      make_known(fact, Value(*gpus));
      fact.setting = config_.find("target.num_gpus");
    }
  }

  const Setting* usable_text(std::string_view path) const {
    const Setting* setting = config_.find(path);
    return usable(setting) && setting->value.kind() == Value::Kind::string ? setting : nullptr;
  }

  std::optional<std::int64_t> usable_integer(std::string_view path) const {
    const Setting* setting = config_.find(path);
    if (!usable(setting) || setting->value.kind() != Value::Kind::integer) return std::nullopt;
    return setting->value.integer();
  }

  const Config& config_;
  const SchemaView& schema_;
  std::unordered_set<std::string_view> unusable_;
};

}  // namespace

Facts derive_facts(const Config& config, const SchemaView& schema, const FactNames& names) {
  Facts facts;
  facts.names = &names;
  facts.config = &config;
  facts.schema = &schema;
  facts.values.reserve(names.size());
  const Deriver deriver(config, schema);
  for (FactId id = 0; id < names.size(); ++id) facts.values.push_back(deriver.derive(names.name(id)));
  return facts;
}

StackFacts::StackFacts(const SchemaView& schema, const FactNames& names)
    : unset_(derive_facts(Config{}, schema, names)) {
  unset_.config = nullptr;
  for (FactId id = 0; id < names.size(); ++id) {
    const std::string_view section = section_of(names.name(id));
    if (section == kTargetSection || section == kClusterSection) dependent_.push_back(id);
  }
}

Facts StackFacts::of(const Config& config) const {
  Facts facts = unset_;
  facts.config = &config;
  const Deriver deriver(config, *facts.schema);
  for (const auto& [path, setting] : config.settings) {
    if (FactId id = 0; facts.names->find(path, id)) facts.values[id] = deriver.derive(path);
  }
  for (const std::string& path : config.open) {  // not all of them are set
    if (FactId id = 0; facts.names->find(path, id)) facts.values[id] = deriver.derive(path);
  }
  for (const FactId id : dependent_) facts.values[id] = deriver.derive(facts.names->name(id));
  return facts;
}

}  // namespace capstan
