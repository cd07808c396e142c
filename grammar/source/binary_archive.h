// Compact bytes of the data that the program carries, made and read by one build. `visit(archive, x)` names
// the parts of x in order, once for both directions: a BinaryWriter appends them, a BinaryReader fills them
// in. Integers are LEB128, so small numbers take one byte. A reader never reads past its bytes: it fails, is
// `good` no more, and leaves the rest empty.
//
// A file that describes types of its own derives its archives from these in its own namespace, so that the
// overloads there are found for the elements of vectors and optionals.
#pragma once

#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

class BinaryWriter {
 public:
  static constexpr bool kReads = false;
  std::string bytes;

  void number(std::uint64_t& value);
  void text(std::string& value);
};

class BinaryReader {
 public:
  static constexpr bool kReads = true;
  std::string_view bytes;  ///< what is not read yet
  bool good = true;
  int value_depth = 0;  ///< of lists and tables being read

  explicit BinaryReader(std::string_view text) : bytes(text) {}
  void number(std::uint64_t& value);
  void text(std::string& value);
  void fail();
  /// All bytes were read and made sense.
  bool complete() const { return good && bytes.empty(); }
};

/// Deepest list or table inside a Value.
inline constexpr int kMaxArchivedDepth = 32;

template <typename Archive>
void visit(Archive& archive, std::string& text) {
  archive.text(text);
}

template <typename Archive>
void visit(Archive& archive, bool& flag) {
  std::uint64_t number = flag ? 1 : 0;
  archive.number(number);
  flag = number != 0;
}

template <typename Archive, typename Integer>
requires(std::is_integral_v<Integer>&& std::is_unsigned_v<Integer>) void visit(Archive& archive,
                                                                               Integer& integer) {
  std::uint64_t number = integer;
  archive.number(number);
  integer = static_cast<Integer>(number);
}

/// Signed numbers with the sign in the lowest bit, so that -1 is as short as 1.
template <typename Archive, typename Integer>
requires(std::is_integral_v<Integer>&& std::is_signed_v<Integer>) void visit(Archive& archive,
                                                                             Integer& integer) {
  const auto wide = static_cast<std::int64_t>(integer);
  std::uint64_t number = (static_cast<std::uint64_t>(wide) << 1) ^ static_cast<std::uint64_t>(wide >> 63);
  archive.number(number);
  integer =
      static_cast<Integer>(static_cast<std::int64_t>(number >> 1) ^ -static_cast<std::int64_t>(number & 1));
}

template <typename Archive>
void visit(Archive& archive, double& floating) {
  auto number = std::bit_cast<std::uint64_t>(floating);
  archive.number(number);
  floating = std::bit_cast<double>(number);
}

template <typename Archive, typename Enum>
requires std::is_enum_v<Enum>
void visit_enum(Archive& archive, Enum& value, Enum last) {
  auto number = static_cast<std::uint64_t>(value);
  archive.number(number);
  if constexpr (Archive::kReads) {
    if (number > static_cast<std::uint64_t>(last)) return archive.fail();
  }
  value = static_cast<Enum>(number);
}

/// The source is given anew when the bytes are read: texts of the build do not travel.
template <typename Archive>
void visit(Archive& archive, Span& span) {
  std::uint64_t begin = span.begin, length = span.end - span.begin;
  archive.number(begin);
  archive.number(length);
  span.begin = static_cast<std::uint32_t>(begin);
  span.end = static_cast<std::uint32_t>(begin + length);
}

template <typename Archive, typename Part>
void visit(Archive& archive, std::vector<Part>& parts) {
  std::uint64_t count = parts.size();
  archive.number(count);
  if constexpr (Archive::kReads) {
    if (count > archive.bytes.size()) return archive.fail();  // every part takes a byte at least
    parts.resize(count);
  }
  for (Part& part : parts) {
    visit(archive, part);
    if constexpr (Archive::kReads) {
      if (!archive.good) return;
    }
  }
}

template <typename Archive, typename First, typename Second>
void visit(Archive& archive, std::pair<First, Second>& pair) {
  visit(archive, pair.first);
  visit(archive, pair.second);
}

template <typename Archive, typename Part>
void visit(Archive& archive, std::optional<Part>& part) {
  bool present = part.has_value();
  visit(archive, present);
  if constexpr (Archive::kReads) {
    if (present) part.emplace();
  }
  if (present) visit(archive, *part);
}

void visit(BinaryWriter& archive, Value& value);
void visit(BinaryReader& archive, Value& value);

template <typename Archive, typename... Parts>
void visit_all(Archive& archive, Parts&... parts) {
  (visit(archive, parts), ...);
}

}  // namespace capstan
