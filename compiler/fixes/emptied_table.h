// A table of a TOML text that is to lose all its keys -> the edit that takes the table itself away. Only the
// header or the inline table goes; comments of the file are handed out or stay where they stand.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct EmptiedTable {
  Edit removal;
  /// The comment lines directly above the table and the comment behind its header. They are part of `removal`
  /// when `comments_move`, else they stay as lines.
  std::vector<std::string> comments;
};

/// Nothing when the file has no such table, or a key of it stays. `is_removed` tells of a key's place whether
/// another edit takes it away; `is_comment` of a line that begins with `#` whether it is a comment.
std::optional<EmptiedTable> find_emptied_table(SourceId file, const SourceMap& sources,
                                               const std::string& section, bool comments_move,
                                               const std::function<bool(const Span&)>& is_removed,
                                               const std::function<bool(std::uint32_t)>& is_comment);

}  // namespace capstan
