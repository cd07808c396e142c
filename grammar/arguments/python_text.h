// Ranges of a Python source, and how they are taken apart: blanks and comments at the ends, parts between
// commas, brackets and what closes them. Offsets in, offsets out; nothing is evaluated.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "grammar/source/source_file.h"
#include "grammar/source/span.h"

namespace capstan {

struct PythonRange {
  std::size_t begin = 0, end = 0;
  bool empty() const { return begin >= end; }
};

class PythonText {
 public:
  PythonText(SourceId source, const SourceMap& sources) : source_(source), bytes_(sources[source].bytes()) {}

  std::string_view bytes() const { return bytes_; }
  std::string_view of(PythonRange range) const { return bytes_.substr(range.begin, range.end - range.begin); }
  Span span(std::size_t begin, std::size_t end) const;
  Span span(PythonRange range) const { return span(range.begin, range.end); }
  /// Without blanks, continued line ends and (at the beginning) comments.
  PythonRange trim(PythonRange range) const;
  /// Parts between commas outside brackets; a trailing comma makes no part.
  std::vector<PythonRange> parts_of(PythonRange range) const;
  /// `(a, b)` and `[a, b]` without their brackets; other ranges as they are.
  PythonRange without_parentheses(PythonRange range) const;
  /// The bracket that closes the one at `open`; the end of the text if none does.
  std::size_t matching(std::size_t open) const;

 private:
  SourceId source_;
  std::string_view bytes_;
};

}  // namespace capstan
