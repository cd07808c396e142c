// List expressions of integers as layer patterns are written: `([0]*3+[1]*58)*2`. Takes Python's lists, `+`,
// `*` and parentheses (Megatron-LM evaluates such texts itself: megatron/training/arguments.py,
// _eval_pattern); gives the list. Bounded in depth and size.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace capstan {

/// Nothing for texts that are no such expression, that give no list, or one of more than 10,000 items.
std::optional<std::vector<std::int64_t>> evaluate_list_expression(std::string_view text);

}  // namespace capstan
