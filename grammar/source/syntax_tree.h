// The tree that every config reader (TOML, YAML, Megatron arguments, Python assignments) makes: tables, lists
// and scalars with their places. Entries keep the order in which the text has them; keys are unique within a
// table.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

struct SyntaxEntry;

struct SyntaxNode {
  enum class Kind { scalar, list, table, unsupported };

  Kind kind = Kind::scalar;
  Value scalar;                      ///< for Kind::scalar
  std::vector<SyntaxNode> items;     ///< for Kind::list
  std::vector<SyntaxEntry> entries;  ///< for Kind::table
  /// The value's own text: for a table made by a header `[a.b]` the header line, for an inline table its
  /// braces.
  Span span;
  /// For Kind::unsupported: what stands there ("date-time"); no Value can hold it.
  std::string what;
};

struct SyntaxEntry {
  std::string key;
  Span key_span;  ///< the key's own text (its last part for a dotted key or header)
  SyntaxNode value;
};

/// Child of a table by key, or null.
const SyntaxNode* find(const SyntaxNode& table, std::string_view key);
/// The node as a Value (places dropped); unsupported nodes give none.
Value to_value(const SyntaxNode& node);

}  // namespace capstan
