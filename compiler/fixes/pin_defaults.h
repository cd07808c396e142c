// Defaults that changed between releases -> settings that keep what the old release had.
#pragma once

#include "compiler/fixes/migration.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// Moves each default that a config of the new release can state from `defaults` to a step of its own.
void pin_defaults(const SchemaView& to, Migration& migration);

}  // namespace capstan
