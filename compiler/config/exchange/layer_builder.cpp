#include "compiler/config/exchange/layer_builder.h"

#include <utility>

namespace capstan {
namespace {

/// `value` inside tables named by the dotted rest of a path.
SyntaxNode nested(std::string_view rest, Span key, SyntaxNode value) {
  const auto dot = rest.find('.');
  SyntaxNode table;
  table.kind = SyntaxNode::Kind::table;
  table.span = value.span;
  const std::string name(rest.substr(0, dot));
  table.entries.push_back({name, key,
                           dot == std::string_view::npos
                               ? std::move(value)
                               : nested(rest.substr(dot + 1), key, std::move(value))});
  return table;
}

void merge(SyntaxNode& into, SyntaxNode from) {
  if (into.kind != SyntaxNode::Kind::table || from.kind != SyntaxNode::Kind::table) {
    into = std::move(from);
    return;
  }
  for (SyntaxEntry& entry : from.entries) {
    bool found = false;
    for (SyntaxEntry& existing : into.entries) {
      if (existing.key != entry.key) continue;
      merge(existing.value, std::move(entry.value));
      found = true;
      break;
    }
    if (!found) into.entries.push_back(std::move(entry));
  }
}

}  // namespace

LayerBuilder::LayerBuilder(OriginKind kind, SourceId source) {
  layer_.kind = kind;
  layer_.source = source;
  layer_.foreign = true;
  layer_.tree.kind = SyntaxNode::Kind::table;
}

void LayerBuilder::set(std::string_view path, Span key, SyntaxNode value) {
  const auto dot = path.find('.');
  const std::string section(path.substr(0, dot));
  const auto [place, is_new] = sections_.emplace(section, layer_.tree.entries.size());
  if (is_new) {
    SyntaxNode table;
    table.kind = SyntaxNode::Kind::table;
    layer_.tree.entries.push_back({section, key, std::move(table)});
  }
  SyntaxEntry& entry = layer_.tree.entries[place->second];
  if (dot == std::string_view::npos) {
    entry.value = std::move(value);
    return;
  }
  const std::string_view rest = path.substr(dot + 1);
  const auto second = rest.find('.');
  const std::string name(rest.substr(0, second));
  const bool deep = second != std::string_view::npos;
  if (deep) value = nested(rest.substr(second + 1), key, std::move(value));
  const auto [known, fresh] = known_.emplace(section + "." + name, entry.value.entries.size());
  if (fresh) {
    entry.value.entries.push_back({name, key, std::move(value)});
  } else {
    SyntaxEntry& existing = entry.value.entries[known->second];
    existing.key_span = key;
    if (deep)
      merge(existing.value, std::move(value));
    else
      existing.value = std::move(value);
  }
}

void LayerBuilder::set(std::string_view path, Span key, Value value, Span place) {
  SyntaxNode node;
  node.span = place;
  if (value.kind() == Value::Kind::list) {
    node.kind = SyntaxNode::Kind::list;
    for (Value& item : value.list()) {
      SyntaxNode child;
      child.scalar = std::move(item);
      child.span = place;
      node.items.push_back(std::move(child));
    }
  } else {
    node.scalar = std::move(value);
  }
  set(path, key, std::move(node));
}

void LayerBuilder::forget(const std::string& section) {
  const auto place = sections_.find(section);
  if (place == sections_.end()) return;
  layer_.tree.entries[place->second].value.entries.clear();
  std::erase_if(known_, [&](const auto& entry) { return entry.first.starts_with(section + "."); });
  forgotten_.insert(section);
}

Layer LayerBuilder::take() {
  std::erase_if(layer_.tree.entries, [&](const SyntaxEntry& entry) {
    return forgotten_.contains(entry.key) && entry.value.entries.empty() &&
           entry.value.kind == SyntaxNode::Kind::table;
  });
  return std::move(layer_);
}

void LayerBuilder::set_unknown(std::string_view path, Span key, Span place) {
  set(path, key, Value("?"), place);
}

}  // namespace capstan
