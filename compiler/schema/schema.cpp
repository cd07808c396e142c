#include "compiler/schema/schema.h"

#include <algorithm>
#include <array>
#include <utility>

namespace capstan {
namespace {

constexpr std::array<std::pair<KeyEffect, const char*>, 6> kEffects = {{{KeyEffect::model, "model"},
                                                                        {KeyEffect::free, "free"},
                                                                        {KeyEffect::memory, "memory"},
                                                                        {KeyEffect::speed, "speed"},
                                                                        {KeyEffect::numerics, "numerics"},
                                                                        {KeyEffect::run, "run"}}};

constexpr std::string_view kAnyName = ".*";

bool contains(const KeyRange& range, const Version& version) {
  return (!range.since || *range.since <= version) && (!range.until || version < *range.until);
}

/// Which of two components speaks for a key that both have: Capstan's own sections, then the front-end, then
/// the rest.
int precedence(std::string_view component) {
  if (component == "capstan") return 0;
  if (component == "megatron-bridge" || component == "megatron-lm") return 1;
  return 2;
}

void sort_and_unique(std::vector<std::string>& names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
}

}  // namespace

const char* key_effect_name(KeyEffect effect) {
  for (const auto& [value, name] : kEffects) {
    if (value == effect) return name;
  }
  return "?";
}

std::optional<KeyEffect> parse_key_effect(std::string_view name) {
  for (const auto& [value, text] : kEffects) {
    if (name == text) return value;
  }
  return std::nullopt;
}

const Version* Stack::version_of(std::string_view component) const {
  for (const auto& [name_of_component, version] : components) {
    if (name_of_component == component) return &version;
  }
  return nullptr;
}

std::string_view section_of(std::string_view path) {
  return path.substr(0, path.find('.'));
}

void Schema::finish() {
  std::sort(keys_.begin(), keys_.end(), [](const KeyInfo& a, const KeyInfo& b) { return a.path < b.path; });
  sections_.clear();
  open_sections_.clear();
  components_ = {"capstan"};
  for (const KeyInfo& key : keys_) {
    const std::string_view section = section_of(key.path);
    if (sections_.empty() || sections_.back() != section) sections_.emplace_back(section);
    if (key.path.ends_with(kAnyName)) open_sections_.emplace_back(section);
    for (const KeyRange& range : key.ranges) {
      if (components_.back() != range.component) components_.push_back(range.component);
      if (range.spec.type.version && section == "target")
        components_.push_back(key.path.substr(section.size() + 1));
    }
  }
  for (const Stack& stack : stacks_) {
    for (const auto& component : stack.components) components_.push_back(component.first);
  }
  sort_and_unique(sections_);
  sort_and_unique(components_);
}

const KeyInfo* Schema::find(std::string_view path) const {
  if (const KeyInfo* key = find_exactly(path)) return key;
  const std::string_view section = section_of(path);
  if (section.size() == path.size() ||
      std::find(open_sections_.begin(), open_sections_.end(), section) == open_sections_.end()) {
    return nullptr;
  }
  return find_exactly(std::string(section) + std::string(kAnyName));
}

const KeyInfo* Schema::find_exactly(std::string_view path) const {
  const auto found =
      std::lower_bound(keys_.begin(), keys_.end(), path,
                       [](const KeyInfo& key, std::string_view wanted) { return key.path < wanted; });
  return found != keys_.end() && found->path == path ? &*found : nullptr;
}

const Stack* Schema::find_stack(std::string_view name) const {
  for (const Stack& stack : stacks_) {
    if (stack.name == name) return &stack;
  }
  return nullptr;
}

const KeySpec* spec_for(const KeyInfo& key, const Stack& stack) {
  const KeyRange* best = nullptr;
  for (const KeyRange& range : key.ranges) {
    if (best != nullptr && precedence(best->component) <= precedence(range.component)) continue;
    if (range.component == "capstan") {
      best = &range;
    } else if (const Version* version = stack.version_of(range.component)) {
      if (contains(range, *version)) best = &range;
    }
  }
  return best == nullptr ? nullptr : &best->spec;
}

namespace {

/// On Core alone: a key of the program that drives Core (its training loop, its data), which Capstan cannot
/// know. It is taken as the front-ends have it, newest release first.
const KeySpec* spec_of_unknown_driver(const KeyInfo& key) {
  const KeySpec* spec = nullptr;
  for (const KeyRange& range : key.ranges) {
    if (range.component == "megatron-core") return nullptr;
    if (spec == nullptr || !range.until) spec = &range.spec;
  }
  return spec;
}

}  // namespace

bool is_native(const KeyInfo& key, const Stack& stack, const Schema& schema) {
  if (spec_for(key, stack) == nullptr) return false;
  if (key.renamed_to.empty()) return true;
  const KeyInfo* successor = schema.find(key.renamed_to);
  return successor == nullptr || spec_for(*successor, stack) == nullptr;
}

SchemaView::SchemaView(const Schema& schema, const Stack& stack) : schema_(&schema), stack_(&stack) {
  specs_.reserve(schema.keys().size());
  for (const KeyInfo& key : schema.keys()) {
    const KeySpec* spec = spec_for(key, stack);
    if (spec == nullptr && stack.frontend == "core") spec = spec_of_unknown_driver(key);
    specs_.push_back(spec);
    const std::string_view section = section_of(key.path);
    if (spec != nullptr && (sections_.empty() || sections_.back() != section)) sections_.push_back(section);
  }
  sections_.push_back(kEnvironmentSection);
  std::sort(sections_.begin(), sections_.end());
  sections_.erase(std::unique(sections_.begin(), sections_.end()), sections_.end());
}

KeyView SchemaView::find(std::string_view path) const {
  const KeyInfo* info = schema_->find(path);
  if (info == nullptr) return {};
  return {info, specs_[static_cast<std::size_t>(info - schema_->keys().data())]};
}

bool SchemaView::has_section(std::string_view section) const {
  return std::binary_search(sections_.begin(), sections_.end(), section);
}

std::vector<std::size_t> SchemaView::known_keys() const {
  std::vector<std::size_t> known;
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    if (specs_[index] != nullptr) known.push_back(index);
  }
  return known;
}

std::string SchemaView::nearest_key(std::string_view path) const {
  const std::string_view section = section_of(path);
  if (section.size() + 1 >= path.size()) return {};
  const std::string_view name = path.substr(section.size() + 1);
  std::vector<std::string> same_section;
  std::string elsewhere;
  for (std::size_t index = 0; index < specs_.size(); ++index) {
    if (specs_[index] == nullptr) continue;
    const std::string& known = schema_->keys()[index].path;
    const std::string_view known_section = section_of(known);
    const std::string_view known_name = std::string_view(known).substr(known_section.size() + 1);
    if (known.ends_with(kAnyName)) continue;
    if (known_section == section)
      same_section.emplace_back(known_name);
    else if (known_name == name && (elsewhere.empty() || known_section == "model"))
      elsewhere = known;
  }
  if (!elsewhere.empty()) return elsewhere;
  const std::string found = nearest(name, same_section);
  return found.empty() ? std::string() : std::string(section) + '.' + found;
}

std::string SchemaView::nearest_section(std::string_view section) const {
  return nearest(section, std::vector<std::string>(sections_.begin(), sections_.end()));
}

}  // namespace capstan
