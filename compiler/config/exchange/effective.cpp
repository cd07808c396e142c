#include "compiler/config/exchange/effective.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "grammar/source/sha256.h"

namespace capstan {
namespace {

bool stays_out(std::string_view section) {
  return section == "target" || section == "cluster" || section == "execute";
}

/// An integer where the key takes floats only is that float, as the framework computes with it.
Value conformed(const Value& given, const TypeSet& type) {
  Value value = function_name(given);
  if (value.kind() == Value::Kind::integer && type.floating && !type.integer && !type.any)
    return Value(static_cast<double>(value.integer()));
  if (value.kind() == Value::Kind::list && type.list_floating && !type.list_integer && !type.list_any) {
    Value::List list;
    for (const Value& item : value.list()) {
      list.push_back(item.kind() == Value::Kind::integer ? Value(static_cast<double>(item.integer())) : item);
    }
    return Value(std::move(list));
  }
  return value;
}

}  // namespace

Value function_name(const Value& value) {
  if (value.kind() != Value::Kind::string) return value;
  for (const std::string_view prefix : {"F.", "torch.nn.functional."}) {
    if (value.string().starts_with(prefix) && value.string().size() > prefix.size())
      return Value(value.string().substr(prefix.size()));
  }
  return value;
}

std::vector<EffectiveValue> effective_config(const Config& config, const SchemaView& view) {
  std::vector<EffectiveValue> out;
  const Schema& schema = view.schema();
  const auto says_nothing = [](const Setting& setting, const KeySpec* spec) {
    return spec != nullptr && spec->has_default && spec->default_text.empty() &&
           spec->default_value == setting.value;
  };
  const std::set<std::string_view> open(config.open.begin(), config.open.end());
  std::map<std::string_view, const Setting*> under_old_name;  // by the new name
  for (const auto& [path, setting] : config.settings) {
    const KeyInfo* key = schema.find(path);
    if (key == nullptr || key->renamed_to.empty()) continue;
    if (!says_nothing(setting, view.find(path).spec)) under_old_name.emplace(key->renamed_to, &setting);
  }
  for (const KeyInfo& key : schema.keys()) {
    if (stays_out(section_of(key.path)) || section_of(key.path) == kEnvironmentSection) continue;
    const KeyView known = view.find(key.path);
    if (known.spec == nullptr || key.path.ends_with(".*")) continue;
    if (!key.renamed_to.empty() && view.find(key.renamed_to).spec != nullptr)
      continue;  // shown under its new name
    const Setting* setting = config.find(key.path);
    if (const auto old = under_old_name.find(key.path);
        old != under_old_name.end() && (setting == nullptr || says_nothing(*setting, known.spec)))
      setting = old->second;
    EffectiveValue value;
    value.path = key.path;
    if (setting != nullptr) {
      value.value = conformed(setting->value, known.spec->type);
      value.origin = setting->origin.kind;
      value.setting = setting;
    } else if (open.contains(key.path)) {
      value.value = Value("?");
      value.open = true;
    } else if (known.spec->has_default) {
      value.value = conformed(known.spec->default_value, known.spec->type);
      value.default_text = known.spec->default_text;
    } else {
      continue;
    }
    out.push_back(std::move(value));
  }
  for (const auto& [path, setting] : config.settings) {
    const bool variable =
        section_of(path) == kEnvironmentSection && !setting.value.is_none();  // none: not set
    const KeyView known = view.find(path);
    const bool of_any_name = known.spec != nullptr && known.info->path != path;
    if (variable || of_any_name) out.push_back({path, setting.value, setting.origin.kind, &setting, {}});
  }
  std::sort(out.begin(), out.end(),
            [](const EffectiveValue& a, const EffectiveValue& b) { return a.path < b.path; });
  return out;
}

std::string effective_digest(const std::vector<EffectiveValue>& values) {
  std::string text;
  for (const EffectiveValue& value : values) {
    text +=
        value.path + " = " + (value.default_text.empty() ? to_text(value.value) : value.default_text) + "\n";
  }
  return sha256(text);
}

std::vector<EffectiveDifference> compare(const std::vector<EffectiveValue>& before,
                                         const std::vector<EffectiveValue>& after) {
  std::vector<EffectiveDifference> out;
  auto a = before.begin();
  auto b = after.begin();
  while (a != before.end() || b != after.end()) {
    if (b == after.end() || (a != before.end() && a->path < b->path)) {
      out.push_back({a->path, &*a, nullptr});
      ++a;
    } else if (a == before.end() || b->path < a->path) {
      out.push_back({b->path, nullptr, &*b});
      ++b;
    } else {
      const bool same = to_text(a->value) == to_text(b->value) && a->value.kind() == b->value.kind() &&
                        a->default_text == b->default_text;
      if (!same) out.push_back({a->path, &*a, &*b});
      ++a;
      ++b;
    }
  }
  return out;
}

}  // namespace capstan
