// One setting as the Megatron-LM argument that says it, for fixes of argument lists.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "compiler/config/exchange/flag_table.h"
#include "grammar/source/value.h"

namespace capstan {

/// "--te-rng-tracker", "--lr 0.1"; nothing when no argument of the newest release says it.
std::optional<std::string> say_argument(std::string_view path, const Value& value);

/// Whether the argument takes a pattern over the layers, such as `([0]*3+[1]*58)`.
bool takes_pattern(const Flag& flag);

/// Whether the argument takes several numbers in one word, such as `128,0` (megatron/training/arguments.py,
/// tuple_type).
bool takes_tuple(const Flag& flag);

/// The flag with a value behind it, quoted for a shell; nothing when its kind of value does not fit.
std::optional<std::string> flag_with_value(const Flag& flag, const Value& value);

}  // namespace capstan
