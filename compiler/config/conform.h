// Does a value fit a key? Converts in place what the framework converts; says what is wrong otherwise.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "compiler/schema/schema.h"
#include "grammar/source/value.h"

namespace capstan {

struct Misfit {
  bool wrong_type = false;          ///< else: a string that is none of the legal ones, or NaN
  Value found;                      ///< the value or list element
  std::optional<std::size_t> item;  ///< index of the list element
};

/// An integer becomes a float where only floats fit; "torch.bfloat16" becomes "bf16" for number types; "none"
/// and "null" become none where none fits and no string of that name does. An integer that no double can hold
/// stays an integer.
std::optional<Misfit> conform(Value& value, const KeySpec& spec);

}  // namespace capstan
