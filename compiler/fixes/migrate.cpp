#include "compiler/fixes/migrate.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "compiler/config/conform.h"
#include "compiler/config/release_gap.h"
#include "grammar/source/comma_words.h"

namespace capstan {
namespace {

constexpr std::string_view kImpl = "model.cuda_graph_impl";
constexpr std::string_view kScope = "model.cuda_graph_scope";
constexpr std::string_view kModules = "model.cuda_graph_modules";

/// The words of a module list: a list of strings, or one string with commas.
std::vector<std::string> words_of(const Value& value) {
  std::vector<std::string> words;
  if (value.kind() == Value::Kind::list) {
    for (const Value& item : value.list()) {
      if (item.kind() == Value::Kind::string) words.push_back(item.string());
    }
  } else if (value.kind() == Value::Kind::string) {
    words = comma_words(value.string());
  }
  return words;
}

Value list_of(const std::vector<std::string>& words) {
  Value::List list;
  for (const std::string& word : words) list.emplace_back(word);
  return Value(std::move(list));
}

class Migrator {
 public:
  Migrator(const Config& config, const SchemaView& from, const SchemaView& to)
      : config_(config), from_(from), to_(to), schema_(to.schema()) {}

  Migration plan() {
    move_target();
    move_graph_capture();
    for (const auto& [path, setting] : config_.settings) {
      if (path.find('.') == std::string::npos || section_of(path) == "target" ||
          section_of(path) == kEnvironmentSection || done(path)) {
        continue;
      }
      move_key(path, setting);
    }
    drop_sections();
    return std::move(migration_);
  }

  std::optional<std::vector<KeyChange>> spell(const std::string& path) {
    const Setting* setting = config_.find(path);
    const KeyInfo* key = schema_.find(path);
    if (setting == nullptr || key == nullptr) return std::nullopt;
    if (path == kScope || path == kModules) move_graph_capture();
    if (done(path)) return migration_.steps.front().changes;
    const auto name = other_name(*key);
    if (!name || config_.find(*name) != nullptr) return std::nullopt;
    Value value = setting->value;
    if (conform(value, *to_.find(*name).spec)) return std::nullopt;
    return std::vector<KeyChange>{{KeyChange::Kind::rename, path, {}, *name}};
  }

 private:
  void step(std::string reason, std::vector<KeyChange> changes) {
    for (const KeyChange& change : changes) done_.push_back(change.path);
    migration_.steps.push_back({std::move(reason), std::move(changes)});
  }
  bool done(const std::string& path) const {
    return std::find(done_.begin(), done_.end(), path) != done_.end();
  }
  bool native(std::string_view path) const {
    const KeyInfo* key = schema_.find(path);
    return key != nullptr && is_native(*key, to_.stack(), schema_);
  }
  static KeyChange set(std::string_view path, Value value) {
    return {KeyChange::Kind::set, std::string(path), std::move(value), {}};
  }
  static KeyChange rename(std::string_view path, std::string_view other) {
    return {KeyChange::Kind::rename, std::string(path), {}, std::string(other)};
  }
  static KeyChange unset(std::string_view path) {
    return {KeyChange::Kind::unset, std::string(path), {}, {}, true};
  }

  void move_target() {
    std::vector<KeyChange> changes;
    const Setting* stack = config_.find("target.stack");
    bool placed = stack != nullptr;
    // Versions and a front-end that were stated for the old release would contradict the new one. The first
    // gives its place, and what is said beside it, to the name of the stack.
    for (const std::string_view component : {"megatron-core", "megatron_core", "megatron-bridge",
                                             "megatron_bridge", "megatron-lm", "megatron_lm", "frontend"}) {
      const std::string path = "target." + std::string(component);
      const Setting* stated = config_.find(path);
      if (stated == nullptr) continue;
      const bool gives_place = !placed && stated->history.empty();
      changes.push_back(gives_place ? rename(path, "target.stack") : unset(path));
      placed = placed || gives_place;
    }
    if (stack == nullptr || stack->value != Value(to_.stack().name))
      changes.push_back(set("target.stack", to_.stack().name));
    if (!changes.empty()) step(fmt::format("the target becomes {}", to_.stack().name), std::move(changes));
  }

  /// Source: Megatron-LM megatron/core/transformer/transformer_config.py and cuda_graph_config.py (0.18): the
  /// scope `full_iteration` of `local` became an implementation of its own with an empty module list; an
  /// empty list (formerly also `full`) stands for the whole layer.
  void move_graph_capture() {
    const Setting* impl = config_.find(kImpl);
    const Setting* scope = config_.find(kScope);
    const Setting* modules = config_.find(kModules);
    if (native(kModules) && scope != nullptr && modules == nullptr) {
      std::vector<std::string> words = words_of(scope->value);
      const bool full_iteration = std::erase(words, "full_iteration") > 0;
      const bool whole_layer = std::erase(words, "full") > 0;
      if (full_iteration && impl != nullptr && impl->value == Value("local")) {
        step("capture of the full iteration is an implementation of its own, with an empty list of modules",
             {set(kImpl, "full_iteration"), rename(kScope, kModules), set(kModules, list_of({}))});
      } else if (whole_layer && words.empty()) {
        step("the whole layer is an empty list of modules",
             {rename(kScope, kModules), set(kModules, list_of({}))});
      }
    } else if (!native(kModules) && native(kScope) && impl != nullptr &&
               impl->value == Value("full_iteration")) {
      std::vector<KeyChange> changes = {set(kImpl, "local")};
      if (modules != nullptr)
        changes.push_back(scope == nullptr ? rename(kModules, kScope) : unset(kModules));
      changes.push_back(set(kScope, list_of({"full_iteration"})));
      step("capture of the full iteration is a scope of `local`", std::move(changes));
    }
  }

  /// A section that the release lacks is an error there even without keys.
  void drop_sections() {
    for (const auto& [section, place] : config_.sections) {
      const bool known = std::binary_search(schema_.sections().begin(), schema_.sections().end(), section);
      if (known && !to_.has_section(section)) {
        migration_.drops.push_back({KeyChange::Kind::drop_table, section, {}, {}});
      }
    }
  }

  void move_key(const std::string& path, const Setting& setting) {
    const KeyInfo* key = schema_.find(path);
    if (key == nullptr) {
      migration_.lost.push_back(fmt::format("`{}` is no key of any known release", path));
      return;
    }
    if (native(path)) {
      check_value(path, setting);
      return;
    }
    if (const auto name = other_name(*key)) {
      if (config_.find(*name) != nullptr) {
        migration_.lost.push_back(
            fmt::format("`{}` and `{}` are both set; {} reads the second", path, *name, to_.stack().name));
      } else {
        step(fmt::format("`{}` is called `{}` in {}", path, *name, to_.stack().name),
             {{KeyChange::Kind::rename, path, {}, *name}});
      }
      return;
    }
    if (to_.find(path).spec != nullptr) return;  // an old spelling that the release still reads
    const KeySpec* old = from_.find(path).spec;
    const std::string gap = release_gap(key->ranges, to_.stack());
    if (old != nullptr && old->has_default && old->default_value == setting.value) {
      step(fmt::format("`{}` {}; it had its default value", path, gap), {unset(path)});
    } else {
      migration_.lost.push_back(
          fmt::format("`{}` {}{}", path, gap, key->removed_hint.empty() ? "" : "; " + key->removed_hint));
    }
  }

  /// The key's name in the new release, along renames in either direction.
  std::optional<std::string> other_name(const KeyInfo& key) const {
    const KeyInfo* at = &key;
    for (int hops = 0; at != nullptr && !at->renamed_to.empty() && hops < 8; ++hops) {
      at = schema_.find(at->renamed_to);
      if (at != nullptr && native(at->path)) return at->path;
    }
    for (const KeyInfo& older : schema_.keys()) {
      if (older.renamed_to == key.path && native(older.path)) return older.path;
    }
    return std::nullopt;
  }

  void check_value(const std::string& path, const Setting& setting) {
    Value value = setting.value;
    if (value == Value("?")) return;
    const auto misfit = conform(value, *to_.find(path).spec);
    if (misfit) {
      migration_.lost.push_back(
          fmt::format("`{}` is {}, which {} does not take", path, to_text(misfit->found), to_.stack().name));
    }
  }

  const Config& config_;
  const SchemaView& from_;
  const SchemaView& to_;
  const Schema& schema_;
  Migration migration_;
  std::vector<std::string> done_;
};

}  // namespace

Migration plan_migration(const Config& config, const SchemaView& from, const SchemaView& to) {
  return Migrator(config, from, to).plan();
}

std::optional<std::vector<KeyChange>> native_spelling(const Config& config, const std::string& path,
                                                      const SchemaView& release) {
  return Migrator(config, release, release).spell(path);
}

}  // namespace capstan
