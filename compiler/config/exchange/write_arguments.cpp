#include "compiler/config/exchange/write_arguments.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/readers.h"

namespace capstan {
namespace {

bool same(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return a.number() == b.number();
  return a == b;
}

/// A word as a shell reads it back unchanged.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
  });
  if (plain) return text;
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

class ArgumentWriter {
 public:
  ArgumentWriter(const Config& config, const SchemaView& view) : config_(config), view_(view) {
    if (const Version* version = view.stack().version_of("megatron-lm"))
      version_ = *version;
    else if (const Version* core = view.stack().version_of("megatron-core"))
      version_ = *core;
  }

  WrittenConfig run() {
    for (const auto& [path, setting] : config_.settings) {
      if (setting.value == Value("?"))
        leave(path, "the value is open");
      else if (section_of(path) == "execute" || section_of(path) == "cluster")
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
    for (const Flag* flag : order) try_flag(*flag);
    drop_implied();
    for (const std::string& path : wanted_) {
      const Setting& setting = *config_.find(path);
      const KeySpec* spec = view_.find(path).spec;
      if (spec != nullptr && spec->has_default && spec->default_text.empty() &&
          same(spec->default_value, setting.value))
        continue;
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
  void leave(std::string path, std::string why) { left_.push_back({std::move(path), std::move(why)}); }

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

  /// Takes the flag when it sets exactly what the config has, and at least one thing not said yet.
  void try_flag(const Flag& flag) {
    const std::vector<std::string> keys = known(flag);
    if (keys.empty() ||
        std::none_of(keys.begin(), keys.end(), [&](const std::string& key) { return wanted_.contains(key); }))
      return;
    std::string text = flag.name;
    if (flag.takes == FlagValue::none) {
      for (const auto& [key, value] : flag.sets) {
        if (!knows(view_, key)) continue;
        const Setting* setting = config_.find(key);
        if (setting == nullptr || !same(setting->value, value)) return;
      }
    } else {
      const Setting* first = nullptr;
      for (const std::string& key : keys) {
        const Setting* setting = config_.find(key);
        if (setting == nullptr || (first != nullptr && !same(first->value, setting->value))) return;
        if (first == nullptr) first = setting;
      }
      if (!write_values(flag, first->value, text)) return;
    }
    for (const std::string& key : keys) wanted_.erase(key);
    used_.insert(flag.name);
    lines_[flag.name] = text;
  }

  static bool write_values(const Flag& flag, const Value& value, std::string& text) {
    if (value.kind() == Value::Kind::list) {
      if (!flag.is_list) return false;
      if (flag.single && value.list().size() == 1) return false;  // would come back as one value
      for (const Value& item : value.list()) {
        if (!write_value(flag.takes, item, text)) return false;
        // A word of a list that begins with dashes would be read as an argument.
        if (item.kind() == Value::Kind::string && item.string().starts_with("--")) return false;
      }
      return true;
    }
    if (flag.is_list && !flag.single) return false;
    if (value.kind() == Value::Kind::string && value.string().starts_with("--")) {
      text += "=" + shell_word(value.string());
      return true;
    }
    return write_value(flag.takes, value, text);
  }

  static bool write_value(FlagValue kind, const Value& value, std::string& text) {
    switch (value.kind()) {
      case Value::Kind::string:
        if (kind != FlagValue::string && kind != FlagValue::any) return false;
        text += " " + shell_word(value.string());
        return true;
      case Value::Kind::integer:
        if (kind == FlagValue::string || kind == FlagValue::boolean) return false;
        text += " " + std::to_string(value.integer());
        return true;
      case Value::Kind::floating:
        if (kind != FlagValue::floating && kind != FlagValue::any) return false;
        text += " " + to_text(value);
        return true;
      case Value::Kind::boolean:
        if (kind != FlagValue::boolean) return false;
        text += value.boolean() ? " true" : " false";
        return true;
      default:
        return false;
    }
  }

  /// What Megatron-LM sets by itself, given the arguments so far, needs none.
  void drop_implied() {
    for (const ImpliedSetting& implied : builtin_flag_table().implied) {
      const auto is_used = [&](const std::string& flag) { return used_.contains(flag); };
      if (!std::all_of(implied.when.begin(), implied.when.end(), is_used)) continue;
      if (std::any_of(implied.unless.begin(), implied.unless.end(), is_used)) continue;
      for (const auto& [key, value] : implied.sets) {
        const Setting* setting = config_.find(key);
        if (setting != nullptr && same(setting->value, value)) {
          wanted_.erase(key);
        } else if (setting == nullptr && knows(view_, key)) {
          const KeySpec* spec = view_.find(key).spec;
          if (spec != nullptr && spec->has_default && same(spec->default_value, value)) continue;
          leave(key, fmt::format("it is not set, but Megatron-LM sets it to `{}`: {}", to_text(value),
                                 implied.why));
        } else if (setting != nullptr && wanted_.erase(key) > 0) {
          leave(key, fmt::format("it is `{}`, but Megatron-LM sets it to `{}`: {}", to_text(setting->value),
                                 to_text(value), implied.why));
        }
      }
    }
  }

  const Config& config_;
  const SchemaView& view_;
  Version version_{9999, 0, 0, 0, 0};
  std::set<std::string> wanted_;
  std::set<std::string> used_;
  std::map<std::string, std::string> lines_;
  std::vector<WrittenConfig::LeftOut> left_;
};

}  // namespace

WrittenConfig write_arguments(const Config& config, const SchemaView& view) {
  return ArgumentWriter(config, view).run();
}

}  // namespace capstan
