// Edits -> new text, a unified diff, and a file that is replaced as a whole or not at all.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"

namespace capstan {

/// The text after the edits of one source. Nothing when two edits overlap or one lies outside the text. An
/// edit that is there twice is made once; insertions at one place are made in the given order.
std::optional<std::string> apply_edits(std::string_view text, std::vector<Edit> edits);

/// Unified diff with three lines of context; empty when the texts are equal.
std::string unified_diff(const std::string& name, std::string_view before, std::string_view after);

/// Writes through a temporary file beside `path` (same permissions), flushes it to the disk and renames it
/// over `path` (over its target, for a symbolic link). On failure `path` is untouched, nothing stays behind
/// and `reason` says why.
bool replace_file(const std::string& path, std::string_view text, std::string& reason);

}  // namespace capstan
