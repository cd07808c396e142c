#include "compiler/fixes/migrate.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "compiler/config/conform.h"
#include "compiler/config/release_gap.h"
#include "compiler/fixes/capture_spelling.h"
#include "compiler/fixes/changed_defaults.h"
#include "grammar/source/comma_words.h"

namespace capstan {
namespace {

bool states_stack(const Config& config, const Stack& stack) {
  const Setting* stated = config.find("target.stack");
  return stated != nullptr && stated->value == Value(stack.name);
}

class Migrator {
 public:
  Migrator(const Config& config, const SchemaView& from, const SchemaView& to)
      : config_(config), from_(from), to_(to), schema_(to.schema()) {}

  Migration plan() {
    if (from_.stack().name == to_.stack().name && states_stack(config_, to_.stack())) return {};
    move_target();
    if (from_.stack().frontend != to_.stack().frontend) {
      migration_.notes.push_back(
          fmt::format("{} and {} are different front-ends: keys of the same name are taken to mean the same, "
                      "and whatever the other front-end does by itself is not looked at",
                      from_.stack().name, to_.stack().name));
    }
    move_capture();
    for (const Setting* setting : settings_as_written()) {
      const std::string& path = setting->path;
      if (path.find('.') == std::string::npos || section_of(path) == "target" ||
          section_of(path) == kEnvironmentSection || done(path)) {
        continue;
      }
      move_key(path, *setting);
    }
    drop_sections();
    migration_.defaults = changed_defaults(config_, from_, to_);
    return std::move(migration_);
  }

  std::optional<std::vector<KeyChange>> spell(const std::string& path) {
    const Setting* setting = config_.find(path);
    const KeyInfo* key = schema_.find(path);
    if (setting == nullptr || key == nullptr) return std::nullopt;
    if (asks_for_capture(path)) {
      move_capture();
      if (!migration_.lost.empty()) return std::nullopt;
      if (done(path)) return migration_.steps.front().changes;
    }
    const auto name = other_name(*key);
    if (!name || config_.find(*name) != nullptr) return std::nullopt;
    Value value = setting->value;
    if (conform(value, *to_.find(*name).spec)) return std::nullopt;
    return std::vector<KeyChange>{{KeyChange::Kind::rename, path, {}, *name}};
  }

 private:
  /// Keys that move to another table keep their order.
  std::vector<const Setting*> settings_as_written() const {
    std::vector<const Setting*> settings;
    for (const auto& [path, setting] : config_.settings) settings.push_back(&setting);
    std::stable_sort(settings.begin(), settings.end(), [](const Setting* a, const Setting* b) {
      const Span& first = a->origin.key;
      const Span& second = b->origin.key;
      return std::pair(first.source, first.begin) < std::pair(second.source, second.begin);
    });
    return settings;
  }

  void step(std::string reason, std::vector<KeyChange> changes) {
    for (const KeyChange& change : changes) done_.insert(change.path);
    migration_.steps.push_back({std::move(reason), std::move(changes)});
  }
  bool done(const std::string& path) const { return done_.contains(path); }
  bool native(std::string_view path) const {
    const KeyInfo* key = schema_.find(path);
    return key != nullptr && is_native(*key, to_.stack(), schema_);
  }
  static KeyChange rename(std::string_view path, std::string_view other) {
    return {KeyChange::Kind::rename, std::string(path), {}, std::string(other)};
  }
  static KeyChange unset(std::string_view path) {
    return {KeyChange::Kind::unset, std::string(path), {}, {}, true};
  }

  /// Whether what is stated beside the stack is true of the new one as well.
  bool holds_for_new_stack(std::string component, const Value& value) const {
    if (value.kind() != Value::Kind::string) return false;
    if (component == "frontend") return value == Value(to_.stack().frontend);
    std::replace(component.begin(), component.end(), '_', '-');
    const Version* version = to_.stack().version_of(component);
    const auto stated = parse_version(value.string());
    return version != nullptr && stated && *stated == *version;
  }

  void move_target() {
    std::vector<KeyChange> changes;
    const Setting* stack = config_.find("target.stack");
    bool placed = stack != nullptr;
    std::string gone;
    // Versions and a front-end that were stated for the old release would contradict the new one. The first
    // gives its place, and what is said beside it, to the name of the stack.
    for (const std::string_view component : {"megatron-core", "megatron_core", "megatron-bridge",
                                             "megatron_bridge", "megatron-lm", "megatron_lm", "frontend"}) {
      const std::string path = "target." + std::string(component);
      const Setting* stated = config_.find(path);
      if (stated == nullptr || holds_for_new_stack(std::string(component), stated->value)) continue;
      const bool gives_place = !placed && stated->history.empty();
      changes.push_back(gives_place ? rename(path, "target.stack") : unset(path));
      placed = placed || gives_place;
      gone += fmt::format("{}`{} = {}`", gone.empty() ? "" : ", ", component, to_text(stated->value));
    }
    if (stack == nullptr || stack->value != Value(to_.stack().name))
      changes.push_back({KeyChange::Kind::set, "target.stack", Value(to_.stack().name), {}});
    if (!changes.empty()) {
      const std::string words = gone.empty() ? "" : fmt::format("; {} would contradict it", gone);
      step(fmt::format("the target becomes {}{}", to_.stack().name, words), std::move(changes));
    }
    note_other_components();
  }

  void note_other_components() {
    std::string stays;
    for (auto at = config_.settings.lower_bound("target.");
         at != config_.settings.end() && at->first.starts_with("target."); ++at) {
      std::string component = at->first.substr(7);
      std::replace(component.begin(), component.end(), '_', '-');
      if (component.ends_with("-min")) component.resize(component.size() - 4);
      const std::vector<std::string>& known = schema_.components();
      if (done(at->first) || to_.stack().version_of(component) != nullptr || component == "capstan" ||
          !std::binary_search(known.begin(), known.end(), component))
        continue;
      stays += fmt::format("{}`{} = {}`", stays.empty() ? "" : ", ", at->first, to_text(at->second.value));
    }
    if (!stays.empty())
      migration_.notes.push_back(fmt::format(
          "{} stays as it is: write what the software that comes with {} has", stays, to_.stack().name));
  }

  void move_capture() {
    CaptureRespelling respelling = respell_capture(config_, from_.stack(), to_.stack());
    for (MigrationStep& one : respelling.steps) step(std::move(one.reason), std::move(one.changes));
    migration_.lost.insert(migration_.lost.end(), respelling.lost.begin(), respelling.lost.end());
  }

  /// A section that the release lacks is an error there even without keys; any other table goes with its
  /// last key. That `[env]` is there says that the environment is stated.
  void drop_sections() {
    std::set<std::string> left;
    for (const MigrationStep& one : migration_.steps) {
      for (const KeyChange& change : one.changes) {
        const std::string section(section_of(change.path));
        const bool leaves =
            change.kind == KeyChange::Kind::unset ||
            (change.kind == KeyChange::Kind::rename && section_of(change.new_path) != section);
        if (leaves && section != "target" && section != kEnvironmentSection) left.insert(section);
      }
    }
    for (const auto& [section, place] : config_.sections) {
      const bool known = std::binary_search(schema_.sections().begin(), schema_.sections().end(), section);
      if (known && (!to_.has_section(section) || left.contains(section))) {
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
      check_value(path, path, setting);
      return;
    }
    if (section_of(path) == kBridgeEnvironmentSection) {
      move_variable(path);
      return;
    }
    if (const auto name = other_name(*key)) {
      if (config_.find(*name) != nullptr) {
        lose_to_other_name(path, *name, setting);
      } else {
        step(fmt::format("`{}` is called `{}` in {}", path, *name, to_.stack().name), {rename(path, *name)});
        check_value(path, *name, setting);
      }
      return;
    }
    if (to_.find(path).spec != nullptr) {  // an old spelling that the release still reads
      check_value(path, path, setting);
      return;
    }
    const KeySpec* old = from_.find(path).spec;
    const std::string gap = release_gap(key->ranges, to_.stack());
    if (old != nullptr && old->has_default && old->default_text.empty() &&
        old->default_value == setting.value) {
      step(fmt::format("`{}` {}; it had its default value", path, gap), {unset(path)});
    } else {
      migration_.lost.push_back(
          fmt::format("`{}` {}{}", path, gap, key->removed_hint.empty() ? "" : "; " + key->removed_hint));
    }
  }

  void lose_to_other_name(const std::string& path, const std::string& name, const Setting& setting) {
    const bool equal = config_.find(name)->value == setting.value;
    if (equal)
      step(fmt::format("`{}` says what `{}` says, its name in {}", path, name, to_.stack().name),
           {unset(path)});
    else
      migration_.lost.push_back(fmt::format("`{}` and `{}` are both set, differently; {} reads the second",
                                            path, name, to_.stack().name));
  }

  /// The defaults of a job's environment stand in its environment itself where the release has no place for
  /// them.
  void move_variable(const std::string& path) {
    const std::string name = std::string(kEnvironmentSection) + path.substr(section_of(path).size());
    if (config_.find(name) != nullptr)
      step(fmt::format("`{}` is overruled by `{}`, and {} has no section `{}`", path, name, to_.stack().name,
                       kBridgeEnvironmentSection),
           {unset(path)});
    else
      step(fmt::format("{} has no section `{}`: `{}` must be set in the job's environment", to_.stack().name,
                       kBridgeEnvironmentSection, path.substr(section_of(path).size() + 1)),
           {rename(path, name)});
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

  /// A value that the old release takes under `path`, and the new one not under `name`.
  void check_value(const std::string& path, const std::string& name, const Setting& setting) {
    if (setting.value == Value("?") || !setting.unsupported.empty()) return;
    const KeySpec* spec = to_.find(name).spec;
    if (spec == nullptr) return;
    Value value = setting.value;
    if (const auto misfit = conform(value, *spec)) {
      migration_.lost.push_back(fmt::format("`{}` {} {}, which {} does not take", path,
                                            misfit->item ? "holds" : "is", to_text(misfit->found),
                                            to_.stack().name));
      return;
    }
    const KeySpec* old = from_.find(path).spec;
    if (old == nullptr || spec->values.empty()) return;
    for (const std::string& word : words_in(setting.value)) {
      const auto lists = [&word](const KeySpec& known) {
        return std::find(known.values.begin(), known.values.end(), word) != known.values.end();
      };
      if (lists(*old) && !lists(*spec))
        migration_.lost.push_back(
            fmt::format("`{}` holds `{}`, which {} does not know", path, word, to_.stack().name));
    }
  }

  static std::vector<std::string> words_in(const Value& value) {
    std::vector<std::string> words;
    if (value.kind() == Value::Kind::string) {
      words = comma_words(value.string());
    } else if (value.kind() == Value::Kind::list) {
      for (const Value& item : value.list()) {
        if (item.kind() == Value::Kind::string) words.push_back(item.string());
      }
    }
    return words;
  }

  const Config& config_;
  const SchemaView& from_;
  const SchemaView& to_;
  const Schema& schema_;
  Migration migration_;
  std::set<std::string> done_;
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
