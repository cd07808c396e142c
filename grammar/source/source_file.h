// Source texts and their places. A SourceMap owns every text of one invocation (config files, overrides on
// the command line, environment, rule files); nothing changes in a text after it was added. Converts byte
// offsets to line and column in code points (what editors show) and in UTF-16 units (what the language server
// protocol counts).
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/source/span.h"

namespace capstan {

enum class SourceKind { file, standard_input, override_argument, environment, builtin };

/// 1-based line and column. Columns count Unicode code points; a tab counts one.
struct LineColumn {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

class SourceFile {
 public:
  SourceFile(std::string name, std::string bytes, SourceKind kind);

  const std::string& name() const { return name_; }
  std::string_view bytes() const { return bytes_; }
  SourceKind kind() const { return kind_; }
  std::uint32_t line_count() const { return static_cast<std::uint32_t>(line_starts_.size()); }

  /// Text of a 1-based line without its line ending (`\n` or `\r\n`). Empty for a line that does not exist.
  std::string_view line(std::uint32_t one_based_line) const;
  /// Place of a byte offset; offsets past the end give the end of the text. Bytes that are no valid UTF-8
  /// count one each.
  LineColumn locate(std::uint32_t offset) const;
  /// Same, with the column in UTF-16 code units, 0-based line and column as the language server protocol
  /// wants them.
  LineColumn locate_utf16(std::uint32_t offset) const;
  /// Byte offset of a 1-based line and code-point column; clamped to the line's end.
  std::uint32_t offset_of(LineColumn place) const;
  std::uint32_t offset_of_utf16(std::uint32_t zero_based_line, std::uint32_t zero_based_column) const;

 private:
  std::string name_;
  std::string bytes_;
  SourceKind kind_;
  std::vector<std::uint32_t> line_starts_;
};

class SourceMap {
 public:
  SourceId add(std::string name, std::string bytes, SourceKind kind);
  const SourceFile& operator[](SourceId id) const { return files_[id]; }
  std::size_t size() const { return files_.size(); }
  std::string_view text(Span span) const;

 private:
  std::deque<SourceFile> files_;  // deque: references stay valid while texts are added
};

/// Why a file could not be read, as one clause ("permission denied", "is a directory", "larger than 16 MiB").
struct ReadFailure {
  std::string reason;
};

/// Largest config, rule or argument file that is read; a larger one is refused before it is loaded.
inline constexpr std::uint64_t kMaxSourceBytes = 16ull << 20;

/// Reads a regular file (or pipe) whole. On failure returns nothing and fills `failure`.
std::optional<std::string> read_text_file(const std::string& path, ReadFailure& failure);

}  // namespace capstan
