// Builds a Layer key by key from "section.key" paths, as the readers of foreign formats need it. Later
// settings of a key replace earlier ones, as argument parsers and assignments do.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "compiler/config/compose.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

class LayerBuilder {
 public:
  LayerBuilder(OriginKind kind, SourceId source);
  /// A path without a dot sets a top-level key. Parts behind the second dot become tables inside the value.
  void set(std::string_view path, Span key, SyntaxNode value);
  void set(std::string_view path, Span key, Value value, Span place);
  /// The key is set, but not to anything that can be known here: open (`?`).
  void set_unknown(std::string_view path, Span key, Span place);
  /// The section is as if nothing of it had been set.
  void forget(const std::string& section);
  bool has(std::string_view path) const { return known_.contains(std::string(path)); }
  bool empty() const { return layer_.tree.entries.empty(); }
  Layer take();

 private:
  Layer layer_;
  std::unordered_map<std::string, std::size_t> sections_;
  std::unordered_map<std::string, std::size_t> known_;  ///< index within the section
  std::set<std::string> forgotten_;
};

}  // namespace capstan
