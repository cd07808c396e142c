// What `capstan migrate` says of one file: for people, and as one JSON object (docs/migrate.schema.json).
#pragma once

#include <string>

#include "compiler/driver/migrate_file.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// Steps, what is to be done by hand, what is lost, notes and changed defaults; one line each.
std::string describe_changes(const MigratedFile& file, const Stack& to);
/// The findings on both sides, each side after its count. `before` and `after` hold the texts of the two
/// sides.
std::string describe_verdicts(const MigratedFile& file, const Stack& to, const SourceMap& before,
                              const SourceMap& after);
/// `path` as the user gave it; `written` tells whether the files were changed.
std::string migration_json(const std::string& path, const MigratedFile& file, const SourceMap& before,
                           const SourceMap& after, bool written);
/// Of a file that is not readable.
std::string unreadable_json(const std::string& path, const MigratedFile& file, const SourceMap& sources);

/// Nothing is lost, nothing is to be done by hand, and the new release has no error.
bool is_complete(const MigratedFile& file);

}  // namespace capstan
