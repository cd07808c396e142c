// Which kinds of value an expression of a rule can have, for finding comparisons and operators that cannot
// make sense. An over-approximation: a kind that is not listed never occurs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "compiler/schema/schema.h"

namespace capstan {

enum KindBit : std::uint16_t {
  kKindNone = 1,
  kKindBoolean = 2,
  kKindInteger = 4,
  kKindFloating = 8,
  kKindString = 16,
  kKindList = 32,
  kKindTable = 64,
  kKindVersion = 128,
  kKindSet = 256,
  kKindNumber = kKindInteger | kKindFloating,
  kKindElements = kKindList | kKindSet,
  kKindAny = 511
};

struct Kinds {
  std::uint16_t bits = 0;
  std::uint16_t elements = 0;  ///< of lists and sets
  /// The strings that can occur (of the value itself or of its elements); null: any.
  std::shared_ptr<const std::vector<std::string>> words;
  bool open_words = false;  ///< `words` are the known ones; others are legal too

  bool has(int mask) const { return (bits & mask) != 0; }
  bool only(int mask) const { return (bits & ~mask) == 0; }
};

Kinds any_kinds();
Kinds of_bits(int bits);
/// Of a key as one range of releases has it.
Kinds kinds_of(const KeySpec& spec);
Kinds kinds_of(const Value& literal);
/// What either can have.
Kinds join(const Kinds& a, const Kinds& b);
/// "boolean, string or none", for messages.
std::string describe(const Kinds& kinds);

}  // namespace capstan
