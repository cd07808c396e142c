// Edits of one source -> its new text, and a unified diff of two texts. Files are written by
// grammar/source/replace_file.h, as a whole or not at all.
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

}  // namespace capstan
