// Source lines with markers under the labelled ranges, for the text renderer. Markers line up under tabs,
// wide characters and combining marks; a line too long for the screen is cut around its first label.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// ANSI sequences, or empty strings for plain text.
struct FramePaint {
  std::string primary, secondary, gutter, reset;
};

/// Digits of the largest line number that the frame will show.
std::uint32_t gutter_width(const std::vector<Label>& labels, const SourceMap& sources);

/// The frame of `labels` (at least one, each with a place), the primary label's text first. Ends with a line
/// feed.
std::string source_frame(const std::vector<Label>& labels, const SourceMap& sources, std::uint32_t gutter,
                         const FramePaint& paint);

/// What `edits` (of one source) change, as lines with `-` and `+`; at most `max_lines`. Ends with a line
/// feed, or empty.
std::string edit_preview(const std::vector<Edit>& edits, const SourceMap& sources, std::uint32_t gutter,
                         std::size_t max_lines, const FramePaint& paint);

}  // namespace capstan
