// Config + stack -> Facts: every schema key of the stack with its set value or its release default,
// environment variables (absent: none), target facts (component versions, GPU architecture), cluster facts.
// No rule is applied here.
#pragma once

#include "compiler/config/config.h"
#include "compiler/facts/facts.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// `names` must hold every name that the rules read (resolve() interned them); other names are not
/// materialised.
Facts derive_facts(const Config& config, const SchemaView& schema, const FactNames& names);

}  // namespace capstan
