// Why a stack does not have a key that other releases have, as the end of a sentence.
#pragma once

#include <string>
#include <vector>

#include "compiler/schema/schema.h"

namespace capstan {

/// "was removed in megatron-core 0.18.0; bridge-0.5 has 0.18.2", "does not exist before megatron-core 0.18.0;
/// ...", "belongs to megatron-lm, which bridge-0.4 does not use". `ranges` are those of the key (or of a
/// whole section).
std::string release_gap(const std::vector<KeyRange>& ranges, const Stack& stack);

}  // namespace capstan
