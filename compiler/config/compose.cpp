#include "compiler/config/compose.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace capstan {
namespace {

void collect_items(const SyntaxNode& node, std::vector<Span>& items) {
  items.clear();
  if (node.kind != SyntaxNode::Kind::list) return;
  items.reserve(node.items.size());
  for (const SyntaxNode& item : node.items) items.push_back(item.span);
}

/// Later entries win; tables below are merged too.
void merge_table(Value::Table& into, const Value::Table& from) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t index = 0; index < into.size(); ++index) places.emplace(into[index].first, index);
  for (const auto& [key, value] : from) {
    const auto [found, is_new] = places.emplace(key, into.size());
    if (is_new) into.emplace_back(key, Value());
    Value& target = into[found->second].second;
    if (target.kind() == Value::Kind::table && value.kind() == Value::Kind::table) {
      merge_table(target.table(), value.table());
    } else {
      target = value;
    }
  }
}

class Composer {
 public:
  explicit Composer(Sink& sink) : sink_(sink) {}

  void add(const Layer& layer) {
    // Overrides and environments are no files: nothing can be written into them.
    if (layer.source != kNoSource &&
        (layer.kind == OriginKind::file || layer.kind == OriginKind::extended_file)) {
      const auto add_once = [&](std::vector<SourceId>& files) {
        if (std::find(files.begin(), files.end(), layer.source) == files.end()) files.push_back(layer.source);
      };
      add_once(config_.files);
      if (layer.foreign) add_once(config_.foreign);
    }
    if (!layer.removed.empty()) {
      remove(layer);
      return;
    }
    for (const SyntaxEntry& section : layer.tree.entries) {
      config_.sections.emplace(section.key, section.key_span);
      if (section.value.kind != SyntaxNode::Kind::table) {
        set(section.key, section, layer);
        continue;
      }
      // A section without keys is kept, so that its name is checked too.
      if (section.value.entries.empty()) set(section.key, section, layer);
      for (const SyntaxEntry& entry : section.value.entries) set(section.key + '.' + entry.key, entry, layer);
    }
  }

  Config take() { return std::move(config_); }

 private:
  void set(std::string path, const SyntaxEntry& entry, const Layer& layer) {
    Value value = to_value(entry.value);
    const Origin origin{layer.kind, entry.key_span, entry.value.span};
    auto found = config_.settings.find(path);
    if (found == config_.settings.end()) {
      Setting setting;
      setting.path = path;
      found = config_.settings.emplace(std::move(path), std::move(setting)).first;
    } else {
      if (layer.must_be_new) {
        sink_.problem(
            "SY005",
            fmt::format("`+{0}` adds a key that is already set; write `{0}=...` to change it", found->first),
            entry.key_span);
        return;
      }
      Setting& setting = found->second;
      setting.history.push_back(setting.origin);
      if (setting.value.kind() == Value::Kind::table && value.kind() == Value::Kind::table) {
        merge_table(setting.value.table(), value.table());
        value = std::move(setting.value);
      }
    }
    Setting& setting = found->second;
    setting.value = std::move(value);
    setting.origin = origin;
    setting.unsupported =
        entry.value.kind == SyntaxNode::Kind::unsupported ? entry.value.what : std::string();
    collect_items(entry.value, setting.items);
  }

  void remove(const Layer& layer) {
    std::string path;
    for (const std::string& part : layer.removed) path += (path.empty() ? "" : ".") + part;
    bool removed = config_.settings.erase(path) > 0;
    if (layer.removed.size() == 1) {  // a whole section
      const auto first = config_.settings.lower_bound(path + '.');
      auto last = first;
      while (last != config_.settings.end() && last->first.starts_with(path + '.')) ++last;
      removed |= first != last;
      config_.settings.erase(first, last);
    } else if (layer.removed.size() > 2 && !removed) {  // an entry of a table
      const auto found = config_.settings.find(layer.removed[0] + '.' + layer.removed[1]);
      if (found != config_.settings.end()) removed = remove_entry(found->second.value, layer.removed);
    }
    if (!removed) {
      sink_.problem("SY005", fmt::format("`~{}` removes a key that is not set", path), layer.removed_span);
    }
  }

  static bool remove_entry(Value& value, const std::vector<std::string>& path) {
    Value* at = &value;
    for (std::size_t depth = 2; depth < path.size(); ++depth) {
      if (at->kind() != Value::Kind::table) return false;
      Value::Table& table = at->table();
      const auto found = std::find_if(table.begin(), table.end(),
                                      [&](const auto& entry) { return entry.first == path[depth]; });
      if (found == table.end()) return false;
      if (depth + 1 == path.size()) {
        table.erase(found);
        return true;
      }
      at = &found->second;
    }
    return false;
  }

  Sink& sink_;
  Config config_;
};

}  // namespace

Config compose(const std::vector<Layer>& layers, Sink& sink) {
  Composer composer(sink);
  for (const Layer& layer : layers) composer.add(layer);
  return composer.take();
}

}  // namespace capstan
