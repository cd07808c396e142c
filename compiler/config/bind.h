// Checks the composed config against what the stack knows: unknown sections and keys (with did-you-mean and
// wrong-section hints), keys of other releases ("removed in X, use Y", "not before X"), types, unknown enum
// values. Converts where the framework does (an integer for a float key). Keys with a problem are listed in
// Config::broken.
#pragma once

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"

namespace capstan {

void bind(Config& config, const SchemaView& schema, Sink& sink);

}  // namespace capstan
