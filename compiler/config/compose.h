// Layers -> Config: the files named by `extends` (depth first, each before the file that names it), the
// checked file, environment files, `--set` overrides, in this order. Later layers win key by key; lists are
// replaced, not joined.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_tree.h"

namespace capstan {

/// A parsed layer: a tree of sections. Readers of other formats (grammar/arguments, config/exchange) give the
/// same.
struct Layer {
  SyntaxNode tree;
  OriginKind kind = OriginKind::file;
  SourceId source = kNoSource;
  bool foreign = false;  ///< the text is no TOML
  /// From overrides: the key must not be set yet (`+key=value`), or its setting is taken away (`~key`).
  bool must_be_new = false;
  std::vector<std::string> removed;  ///< path of the removed key
  Span removed_span;
};

/// Gives the text of an `extends` target; tests and the editor server read from memory. Returns nothing and a
/// reason on failure.
struct FileReader {
  virtual ~FileReader() = default;
  virtual std::optional<std::string> read(const std::string& path, ReadFailure& failure) const = 0;
};
const FileReader& disk_reader();

/// Reads the TOML file already in `sources` and everything it extends. Reports syntax errors, unreadable
/// files, cycles (with the chain), nesting deeper than 16 files. Nothing on a syntax error in any layer.
std::optional<std::vector<Layer>> load_layers(SourceId file, SourceMap& sources, const FileReader& reader,
                                              Sink& sink);

/// Raw composition, before types are checked. Tables that are values of keys are merged key by key.
/// Reports `+key` of a key that is set, and `~key` of one that is not.
Config compose(const std::vector<Layer>& layers, Sink& sink);

}  // namespace capstan
