// Whether a value switches off what its key stands for, whatever the key.
#pragma once

#include "grammar/source/value.h"

namespace capstan {

/// None, false, 0, and an empty text, list or table.
bool asks_for_nothing(const Value& value);

}  // namespace capstan
