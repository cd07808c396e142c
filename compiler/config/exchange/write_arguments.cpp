#include "compiler/config/exchange/write_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/config/exchange/effective.h"
#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/readers.h"
#include "compiler/config/exchange/say_argument.h"

namespace capstan {
namespace {

using Kind = WrittenConfig::LeftOut::Kind;

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return function_name(a) == function_name(b);
}

/// Absent, or the default.
bool says_nothing(const Setting* setting, const SchemaView& view) {
  if (setting == nullptr) return true;
  const KeySpec* spec = view.find(setting->path).spec;
  return spec != nullptr && spec->has_default && spec->default_text.empty() &&
         same(spec->default_value, setting->value);
}

bool is_said_by_a_flag(const std::string& path) {
  static const std::set<std::string> paths = [] {
    std::set<std::string> all;
    for (const Flag& flag : builtin_flag_table().flags) {
      all.insert(flag.keys.begin(), flag.keys.end());
      for (const auto& [key, value] : flag.sets) all.insert(key);
    }
    return all;
  }();
  return paths.contains(path);
}

/// The argument whose own name a key bears: `model.swiglu`, `arguments.norm_epsilon`. Null for other keys.
const Flag* argument_named(const std::string& path) {
  const auto dot = path.find('.');
  if (dot == std::string::npos || is_said_by_a_flag(path)) return nullptr;
  std::string name = "--" + path.substr(dot + 1);
  std::replace(name.begin(), name.end(), '_', '-');
  const Flag* flag = builtin_flag_table().find(name);
  return flag != nullptr && flag->irrelevant.empty() ? flag : nullptr;
}

/// Keys that bear the name of an argument, as the keys that the argument sets.
void resolve_argument_names(Config& config, const SchemaView& view,
                            std::vector<WrittenConfig::LeftOut>& left) {
  const std::map<std::string, Setting, std::less<>> given(config.settings.begin(), config.settings.end());
  for (const auto& [path, setting] : given) {
    const Flag* flag = argument_named(path);
    const KeySpec* spec = view.find(path).spec;
    if (flag == nullptr || spec == nullptr || setting.value.is_none() || setting.value == Value("?"))
      continue;
    if (says_nothing(&setting, view)) continue;
    std::vector<std::pair<std::string, Value>> sets;
    if (flag->takes != FlagValue::none) {
      for (const std::string& key : flag->keys) sets.emplace_back(key, setting.value);
    } else if (setting.value == Value(true)) {
      sets = flag->sets;
    }
    std::erase_if(sets, [&](const auto& set) { return !knows(view, set.first); });
    const bool contradicted = std::any_of(sets.begin(), sets.end(), [&](const auto& set) {
      const Setting* own = config.find(set.first);
      return !says_nothing(own, view) && !same(own->value, set.second);
    });
    if (sets.empty() || contradicted) continue;
    config.settings.erase(path);
    left.push_back({path, fmt::format("it is said as `{}`", flag->name), Kind::respelled});
    for (const auto& [key, value] : sets) {
      if (!says_nothing(config.find(key), view)) continue;
      Setting meant = setting;
      meant.path = key;
      meant.value = value;
      config.settings[key] = std::move(meant);
      left.push_back({key, fmt::format("it is what `{}` means", path), Kind::respelled});
    }
  }
}

/// The config in the keys that arguments stand for: under their newest names, and with what `mixed_precision`
/// says in the sections to which Bridge copies it (megatron/bridge/training/mixed_precision.py, setup);
/// Megatron-LM has the fields only there.
Config in_keys_of_arguments(const Config& given, const SchemaView& view,
                            std::vector<WrittenConfig::LeftOut>& left) {
  Config config = given;
  resolve_argument_names(config, view, left);
  Config out = config;
  for (const auto& [path, setting] : config.settings) {
    const KeyInfo* key = view.schema().find(path);
    if (key != nullptr && !key->renamed_to.empty() && knows(view, key->renamed_to) &&
        says_nothing(config.find(key->renamed_to), view)) {
      Setting renamed = setting;
      renamed.path = key->renamed_to;
      out.settings.erase(path);
      out.settings[key->renamed_to] = std::move(renamed);
    }
    if (section_of(path) != "mixed_precision" || path == "mixed_precision.recipe" || setting.value.is_none())
      continue;
    bool copied = false;
    for (const char* section : {"model.", "optimizer.", "ddp."}) {
      const std::string twin = section + path.substr(path.find('.') + 1);
      if (!knows(view, twin)) continue;
      const Setting* own = config.find(twin);
      if (own == nullptr || !same(own->value, setting.value)) {
        left.push_back(
            {twin, fmt::format("`{}` gives it `{}`, which is said instead", path, to_text(setting.value)),
             own == nullptr ? Kind::added : Kind::lost});
      }
      Setting moved = setting;
      moved.path = twin;
      out.settings[twin] = std::move(moved);
      copied = true;
    }
    if (!copied) continue;
    out.settings.erase(path);
    left.push_back(
        {path, "Megatron-LM has no such section; it is said for those that have the field", Kind::respelled});
  }
  return out;
}

/// Megatron-LM with the core that this release of Bridge pins; null if there is none.
const Stack* reader_of_arguments(const SchemaView& view) {
  const Version* const core = view.stack().version_of("megatron-core");
  if (core == nullptr) return nullptr;
  for (const Stack& stack : view.schema().stacks()) {
    const Version* const theirs = stack.version_of("megatron-core");
    if (stack.frontend == "megatron-lm" && theirs != nullptr && theirs->major == core->major &&
        theirs->minor == core->minor)
      return &stack;
  }
  return nullptr;
}

/// The config with the defaults of its own front-end said where Megatron-LM has others: an absent argument
/// would mean the latter.
Config with_own_defaults(const Config& given, const SchemaView& view, const SchemaView& theirs) {
  Config config = given;
  const std::set<std::string_view> open(given.open.begin(), given.open.end());
  for (const std::size_t index : view.known_keys()) {
    const KeyInfo& key = view.schema().keys()[index];
    const std::string_view section = section_of(key.path);
    const KeySpec* const own = view.find(key.path).spec;
    const KeySpec* const other = theirs.find(key.path).spec;
    const bool stands_for_another = !key.renamed_to.empty() && view.find(key.renamed_to).spec != nullptr;
    if (section == "target" || section == "cluster" || section == "execute" || section == "mixed_precision" ||
        stands_for_another || other == nullptr || config.find(key.path) != nullptr || open.contains(key.path))
      continue;
    if (!own->has_default || !own->default_text.empty()) continue;
    if (other->has_default && other->default_text.empty() && same(own->default_value, other->default_value))
      continue;
    Setting setting;
    setting.path = key.path;
    setting.value = own->default_value;
    config.settings.emplace(key.path, std::move(setting));
  }
  return config;
}

class ArgumentWriter {
 public:
  ArgumentWriter(const Config& config, const SchemaView& view)
      : config_(in_keys_of_arguments(config, view, left_)), view_(view) {
    if (const Version* version = view.stack().version_of("megatron-lm"))
      version_ = *version;
    else if (const Version* core = view.stack().version_of("megatron-core"))
      version_ = *core;
  }

  WrittenConfig run() {
    for (const auto& [path, setting] : config_.settings) {
      if (setting.value == Value("?"))
        leave(path, "the value is open");
      else if (section_of(path) == "execute" || section_of(path) == "cluster" ||
               (section_of(path) == "target" && path != "target.frontend"))
        leave(path, "only Capstan reads this section");
      else if (section_of(path) != "target" && section_of(path) != kEnvironmentSection)
        wanted_.insert(path);
    }
    // Arguments that set several keys come first: they explain more.
    std::vector<const Flag*> order;
    for (const Flag& flag : builtin_flag_table().flags) {
      if (flag.irrelevant.empty() && flag.name.starts_with("--") && in_release(flag)) order.push_back(&flag);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](const Flag* a, const Flag* b) { return width(*a) > width(*b); });
    for (const Flag* flag : order) try_flag(*flag, false);
    // What is left is said by arguments that say more than the config does.
    std::stable_sort(order.begin(), order.end(),
                     [&](const Flag* a, const Flag* b) { return width(*a) < width(*b); });
    for (const Flag* flag : order) {
      if (!used_.contains(flag->name)) try_flag(*flag, true);
    }
    drop_implied();
    for (const std::string& path : wanted_) {
      const Setting& setting = *config_.find(path);
      if (is_default(path, setting.value)) continue;
      leave(path, fmt::format("no argument of this release sets it to `{}`", to_text(setting.value)));
    }
    WrittenConfig out;
    for (const auto& [flag, text] : lines_) out.text += text + "\n";
    for (const auto& [path, setting] : config_.settings) {
      if (section_of(path) != kEnvironmentSection || setting.value == Value("?")) continue;
      leave(path, "an environment variable is no argument; `--to env` writes it");
    }
    std::sort(left_.begin(), left_.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    out.left_out = std::move(left_);
    return out;
  }

 private:
  void leave(std::string path, std::string why) {
    left_.push_back({std::move(path), std::move(why), Kind::lost});
  }
  void add(std::string path, std::string why) {
    left_.push_back({std::move(path), std::move(why), Kind::added});
  }

  bool in_release(const Flag& flag) const {
    return (!flag.since || version_ >= *flag.since) && (!flag.until || version_ < *flag.until);
  }
  std::vector<std::string> known(const Flag& flag) const {
    std::vector<std::string> out;
    for (const std::string& key : flag.keys) {
      if (knows(view_, key)) out.push_back(key);
    }
    for (const auto& [key, value] : flag.sets) {
      if (knows(view_, key)) out.push_back(key);
    }
    return out;
  }
  std::size_t width(const Flag& flag) const { return known(flag).size(); }

  /// Whether the release's parser knows other words only.
  bool refuses(const Flag& flag, const Value& value) const {
    const auto* words = words_of(flag, version_);
    if (words == nullptr) return false;
    const auto is_other = [&](const Value& word) {
      return word.kind() == Value::Kind::string &&
             std::find(words->begin(), words->end(), word.string()) == words->end();
    };
    if (value.kind() != Value::Kind::list) return is_other(value);
    return std::any_of(value.list().begin(), value.list().end(), is_other);
  }

  bool is_default(const std::string& key, const Value& value) const {
    const KeySpec* spec = view_.find(key).spec;
    return spec != nullptr && spec->has_default && spec->default_text.empty() &&
           same(spec->default_value, value);
  }

  /// Takes the flag when it sets what the config has, and at least one thing not said yet. With `more`, keys
  /// that the config does not set may get a value from it, too; they are listed.
  void try_flag(const Flag& flag, bool more) {
    const std::vector<std::string> keys = known(flag);
    const auto is_wanted = [&](const std::string& key) {
      return wanted_.contains(key) && !is_default(key, config_.find(key)->value);
    };
    const auto is_left = [&](const std::string& key) { return wanted_.contains(key); };
    if (keys.empty() || (more ? std::none_of(keys.begin(), keys.end(), is_wanted)
                              : std::none_of(keys.begin(), keys.end(), is_left)))
      return;
    std::string text = flag.name;
    std::vector<std::pair<std::string, Value>> extra;
    if (flag.takes == FlagValue::none) {
      for (const auto& [key, value] : flag.sets) {
        if (!knows(view_, key)) continue;
        const Setting* setting = config_.find(key);
        if (setting == nullptr && is_default(key, value)) continue;
        if (setting == nullptr && more)
          extra.emplace_back(key, value);
        else if (setting == nullptr || !same(setting->value, value))
          return;
      }
    } else {
      const Setting* first = nullptr;
      for (const std::string& key : keys) {
        const Setting* setting = config_.find(key);
        if (setting == nullptr && more) continue;
        if (setting == nullptr || (first != nullptr && !same(first->value, setting->value))) return;
        if (first == nullptr) first = setting;
      }
      if (first == nullptr) return;
      if (refuses(flag, first->value)) return;
      const auto said = flag_with_value(as_of(flag, version_), first->value);
      if (!said) return;
      text = *said;
      for (const std::string& key : keys) {
        if (config_.find(key) == nullptr && !is_default(key, first->value))
          extra.emplace_back(key, first->value);
      }
    }
    for (const auto& [key, value] : extra)
      add(key, fmt::format("`{}` sets it to `{}`", flag.name, to_text(value)));
    for (const std::string& key : keys) wanted_.erase(key);
    used_.insert(flag.name);
    lines_[flag.name] = text;
  }

  /// A switch among those that keep an implied setting away, and that contradicts nothing.
  bool keep_away(const ImpliedSetting& implied, bool contradicted) {
    for (const std::string& name : implied.unless) {
      const Flag* flag = builtin_flag_table().find(name);
      if (flag == nullptr || flag->takes != FlagValue::none || !in_release(*flag)) continue;
      const bool fits = std::all_of(flag->sets.begin(), flag->sets.end(), [&](const auto& set) {
        const Setting* setting = config_.find(set.first);
        if (setting != nullptr) return same(setting->value, set.second);
        // To keep a default, no other key may change; `arguments` only mirrors the switch.
        return contradicted || section_of(set.first) == "arguments" || !knows(view_, set.first) ||
               is_default(set.first, set.second);
      });
      if (!fits) continue;
      for (const auto& [key, value] : flag->sets) {
        if (!knows(view_, key) || config_.find(key) != nullptr || is_default(key, value)) continue;
        add(key, fmt::format("`{}` sets it to `{}`", name, to_text(value)));
      }
      used_.insert(name);
      lines_[name] = name;
      return true;
    }
    return false;
  }

  /// What Megatron-LM sets by itself, given the arguments so far, needs none.
  void drop_implied() {
    for (const ImpliedSetting& implied : builtin_flag_table().implied) {
      const auto is_used = [&](const std::string& flag) { return used_.contains(flag); };
      if (!std::all_of(implied.when.begin(), implied.when.end(), is_used)) continue;
      if (std::any_of(implied.unless.begin(), implied.unless.end(), is_used)) continue;
      const bool contradicted = std::any_of(implied.sets.begin(), implied.sets.end(), [&](const auto& set) {
        const Setting* setting = config_.find(set.first);
        return setting != nullptr && setting->value != Value("?") && !same(setting->value, set.second);
      });
      const bool changes_default =
          std::any_of(implied.sets.begin(), implied.sets.end(), [&](const auto& set) {
            return config_.find(set.first) == nullptr && knows(view_, set.first) &&
                   !is_default(set.first, set.second);
          });
      if ((contradicted || changes_default) && keep_away(implied, contradicted)) continue;
      for (const auto& [key, value] : implied.sets) {
        const Setting* setting = config_.find(key);
        if (setting != nullptr && same(setting->value, value)) {
          wanted_.erase(key);
        } else if (setting == nullptr && knows(view_, key)) {
          if (is_default(key, value)) continue;
          add(key, fmt::format("Megatron-LM sets it to `{}`: {}", to_text(value), implied.why));
        } else if (setting != nullptr && wanted_.erase(key) > 0) {
          leave(key, fmt::format("it is `{}`, but Megatron-LM sets it to `{}`: {}", to_text(setting->value),
                                 to_text(value), implied.why));
        }
      }
    }
  }

  std::vector<WrittenConfig::LeftOut> left_;  // filled while config_ is made
  const Config config_;
  const SchemaView& view_;
  Version version_{9999, 0, 0, 0, 0};
  std::set<std::string> wanted_;
  std::set<std::string> used_;
  std::map<std::string, std::string> lines_;
};

}  // namespace

WrittenConfig write_arguments(const Config& config, const SchemaView& view) {
  const Stack* const reader = view.stack().frontend == "bridge" ? reader_of_arguments(view) : nullptr;
  if (reader == nullptr) return ArgumentWriter(config, view).run();
  const SchemaView theirs(view.schema(), *reader);
  return ArgumentWriter(with_own_defaults(config, view, theirs), theirs).run();
}

}  // namespace capstan
