#include "grammar/source/source_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "grammar/source/input_file.h"

namespace capstan {
namespace {

/// Length in bytes of the UTF-8 sequence at `at`; 1 for bytes that start no valid sequence.
std::uint32_t sequence_length(std::string_view text, std::size_t at) {
  const auto lead = static_cast<unsigned char>(text[at]);
  std::uint32_t length = 1;
  if (lead >= 0xC2 && lead <= 0xDF)
    length = 2;
  else if (lead >= 0xE0 && lead <= 0xEF)
    length = 3;
  else if (lead >= 0xF0 && lead <= 0xF4)
    length = 4;
  if (at + length > text.size()) return 1;
  for (std::uint32_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[at + i]) & 0xC0) != 0x80) return 1;
  }
  return length;
}

/// How many of the bytes in [begin, end) one can step over at once, each a character of its own: whole blocks
/// of ASCII. A line may have megabytes, and a thousand findings.
std::uint32_t ascii_blocks(std::string_view text, std::uint32_t begin, std::uint32_t end) {
  constexpr std::uint32_t kBlock = 64;
  std::uint32_t at = begin;
  for (; end - at >= kBlock; at += kBlock) {
    std::uint64_t words[kBlock / 8], any = 0;
    std::memcpy(words, text.data() + at, kBlock);
    for (const std::uint64_t word : words) any |= word;
    if ((any & 0x8080808080808080ull) != 0) break;
  }
  return at - begin;
}

}  // namespace

SourceFile::SourceFile(std::string name, std::string bytes, SourceKind kind)
    : name_(std::move(name)), bytes_(std::move(bytes)), kind_(kind) {
  line_starts_.push_back(0);
  for (std::size_t i = 0; i < bytes_.size(); ++i) {
    if (bytes_[i] == '\n') line_starts_.push_back(static_cast<std::uint32_t>(i + 1));
  }
}

std::string_view SourceFile::line(std::uint32_t one_based_line) const {
  if (one_based_line == 0 || one_based_line > line_starts_.size()) return {};
  const std::size_t begin = line_starts_[one_based_line - 1];
  std::size_t end = one_based_line < line_starts_.size() ? line_starts_[one_based_line] - 1 : bytes_.size();
  if (end > begin && bytes_[end - 1] == '\r') --end;
  return std::string_view(bytes_).substr(begin, end - begin);
}

LineColumn SourceFile::locate(std::uint32_t offset) const {
  offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(bytes_.size()));
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::uint32_t>(after - line_starts_.begin());
  std::uint32_t column = 1;
  for (std::uint32_t at = line_starts_[line - 1]; at < offset;) {
    if (const std::uint32_t plain = ascii_blocks(bytes_, at, offset); plain != 0) {
      at += plain;
      column += plain;
      continue;
    }
    // A block that is not all ASCII, or the rest: one character after the other.
    const std::uint32_t stop = std::min(offset, at + 64);
    for (; at < stop; at += sequence_length(bytes_, at)) ++column;
  }
  return {line, column};
}

LineColumn SourceFile::locate_utf16(std::uint32_t offset) const {
  offset = std::min<std::uint32_t>(offset, static_cast<std::uint32_t>(bytes_.size()));
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset);
  const auto line = static_cast<std::uint32_t>(after - line_starts_.begin());
  std::uint32_t units = 0;
  for (std::uint32_t at = line_starts_[line - 1]; at < offset;) {
    if (const std::uint32_t plain = ascii_blocks(bytes_, at, offset); plain != 0) {
      at += plain;
      units += plain;
      continue;
    }
    const std::uint32_t stop = std::min(offset, at + 64);
    while (at < stop) {
      const std::uint32_t length = sequence_length(bytes_, at);
      units += length == 4 ? 2 : 1;  // code points above U+FFFF take a surrogate pair
      at += length;
    }
  }
  return {line - 1, units};
}

std::uint32_t SourceFile::offset_of(LineColumn place) const {
  if (place.line == 0) return 0;
  if (place.line > line_starts_.size()) return static_cast<std::uint32_t>(bytes_.size());
  std::uint32_t at = line_starts_[place.line - 1];
  const auto end = static_cast<std::uint32_t>(at + line(place.line).size());
  for (std::uint32_t column = 1; column < place.column && at < end; ++column)
    at += sequence_length(bytes_, at);
  return at;
}

std::uint32_t SourceFile::offset_of_utf16(std::uint32_t zero_based_line,
                                          std::uint32_t zero_based_column) const {
  if (zero_based_line >= line_starts_.size()) return static_cast<std::uint32_t>(bytes_.size());
  std::uint32_t at = line_starts_[zero_based_line];
  const auto end = static_cast<std::uint32_t>(at + line(zero_based_line + 1).size());
  for (std::uint32_t units = 0; units < zero_based_column && at < end;) {
    const std::uint32_t length = sequence_length(bytes_, at);
    units += length == 4 ? 2 : 1;
    at += length;
  }
  return at;
}

SourceId SourceMap::add(std::string name, std::string bytes, SourceKind kind) {
  files_.emplace_back(std::move(name), std::move(bytes), kind);
  return static_cast<SourceId>(files_.size() - 1);
}

std::string_view SourceMap::text(Span span) const {
  if (!span.exists() || span.source >= files_.size()) return {};
  const std::string_view bytes = files_[span.source].bytes();
  const std::size_t begin = std::min<std::size_t>(span.begin, bytes.size());
  const std::size_t end = std::min<std::size_t>(std::max(span.end, span.begin), bytes.size());
  return bytes.substr(begin, end - begin);
}

std::optional<std::string> read_text_file(const std::string& path, ReadFailure& failure) {
  const int file = open_input_file(path, failure.reason);
  if (file < 0) return std::nullopt;
  struct Closer {
    int descriptor;
    ~Closer() { ::close(descriptor); }
  } closer{file};
  struct stat status {};
  if (::fstat(file, &status) != 0) {
    failure.reason = std::strerror(errno);
    return std::nullopt;
  }
  const std::string too_large = "is larger than " + std::to_string(kMaxSourceBytes >> 20) + " MiB";
  if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) > kMaxSourceBytes) {
    failure.reason = too_large;
    return std::nullopt;
  }
  std::string bytes;
  char chunk[65536];
  while (true) {
    const ssize_t count = ::read(file, chunk, sizeof chunk);
    if (count < 0) {
      if (errno == EINTR) continue;
      failure.reason = std::strerror(errno);
      return std::nullopt;
    }
    if (count == 0) return bytes;
    bytes.append(chunk, static_cast<std::size_t>(count));
    if (bytes.size() > kMaxSourceBytes) {
      failure.reason = too_large;
      return std::nullopt;
    }
  }
}

}  // namespace capstan
