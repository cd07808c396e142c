// A half-open byte range in one source text. Every syntax node, config value and diagnostic label carries
// one.
#pragma once

#include <cstdint>

namespace capstan {

/// Index of a source text in its SourceMap. `kNoSource` marks a value that stands in no text (a default).
using SourceId = std::uint32_t;
inline constexpr SourceId kNoSource = 0xffffffffu;

struct Span {
  SourceId source = kNoSource;
  std::uint32_t begin = 0;  ///< byte offset of the first byte
  std::uint32_t end = 0;    ///< byte offset one past the last byte

  bool exists() const { return source != kNoSource; }
  friend bool operator==(const Span&, const Span&) = default;
};

}  // namespace capstan
