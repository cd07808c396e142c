// One config file and a release -> its texts in that release, what was changed and why, what cannot be said
// there, and what the linter says of it on both sides. Writes nothing.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/config/exchange/format.h"
#include "compiler/diagnostics/selection.h"
#include "compiler/driver/workspace.h"
#include "compiler/fixes/migration.h"

namespace capstan {

struct MigrateFileOptions {
  bool keep_defaults = false;  ///< writes what the old release has for keys that the config leaves out
  Selection selection;
  std::vector<KnownCode> known;  ///< of comments that suppress findings
  std::string date;              ///< for their expiry
};

struct MigratedFile {
  bool readable = false;  ///< false: `problems` says why; nothing else is filled
  std::vector<Diagnostic> problems;
  SourceId source = kNoSource;  ///< the file as it was read
  StackChoice from;
  ConfigFormat format = ConfigFormat::toml;
  Migration migration;
  std::vector<std::string> by_hand;       ///< changes that no edit of a TOML file reaches, as clauses
  std::vector<Diagnostic> before, after;  ///< sorted for output
  /// The verdict `after` is that of the config with what is to be done by hand.
  bool as_if_by_hand = false;
  /// Files that change: path -> text before, text after. May name files that the checked one extends.
  std::map<std::string, std::pair<std::string, std::string>> texts;
  std::string text;  ///< of the checked file, afterwards
};

/// `old_release` reads the file as it stands (its `--target` is the release that the file is of),
/// `new_release` with the same options but no target; they may be one. `to` is a stack of the schema.
MigratedFile migrate_file(Workspace& old_release, Workspace& new_release, const std::string& path,
                          const Stack& to, const MigrateFileOptions& options);
/// Of a text that `old_release` has as a source.
MigratedFile migrate_source(Workspace& old_release, Workspace& new_release, SourceId file, const Stack& to,
                            const MigrateFileOptions& options);

}  // namespace capstan
