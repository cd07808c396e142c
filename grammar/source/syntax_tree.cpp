#include "grammar/source/syntax_tree.h"

namespace capstan {

const SyntaxNode* find(const SyntaxNode& table, std::string_view key) {
  for (const SyntaxEntry& entry : table.entries) {
    if (entry.key == key) return &entry.value;
  }
  return nullptr;
}

Value to_value(const SyntaxNode& node) {
  switch (node.kind) {
    case SyntaxNode::Kind::scalar:
      return node.scalar;
    case SyntaxNode::Kind::list: {
      Value::List list;
      list.reserve(node.items.size());
      for (const SyntaxNode& item : node.items) list.push_back(to_value(item));
      return Value(std::move(list));
    }
    case SyntaxNode::Kind::table: {
      Value::Table table;
      table.reserve(node.entries.size());
      for (const SyntaxEntry& entry : node.entries) table.emplace_back(entry.key, to_value(entry.value));
      return Value(std::move(table));
    }
    case SyntaxNode::Kind::unsupported:
      break;
  }
  return Value();
}

}  // namespace capstan
