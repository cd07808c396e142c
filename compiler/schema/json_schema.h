// What a stack knows of the training config, as a JSON Schema (draft 7) for editors: completion, types,
// documentation. It accepts every config whose keys and types `capstan lint` accepts for that stack; rules
// are not part of it.
#pragma once

#include <string>

#include "compiler/schema/schema.h"

namespace capstan {

/// Deterministic text with a line break at its end.
std::string print_json_schema(const SchemaView& view);

}  // namespace capstan
