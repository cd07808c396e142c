// What turns a config with a `[sweep]` table into the config of one of its points, in another folder. Both
// steps give edits of the TOML text that leave every other byte alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// Takes the top-level table `name` out, however it is written: headers, headers of tables in it, dotted
/// keys, an inline table. Comments between its lines stay. The file must be TOML that parses, else nothing is
/// taken.
std::vector<Edit> removal_of_table(std::string_view name, SourceId file, const SourceMap& sources);

/// Relative file names that the file itself holds (`extends`, `dataset.path`: both mean the file's own
/// folder), rewritten so that a copy in `folder` names the same files. `folder` need not exist yet.
std::vector<Edit> moved_file_names(SourceId file, const std::string& folder, const SourceMap& sources);

}  // namespace capstan
