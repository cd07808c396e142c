// The `[sweep]` table of a config: `"model.x" = [1, 2]`, or `model.x = [1, 2]`, names the values that
// `capstan sweep` tries for a key. It is no part of the config that is judged.
#pragma once

#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// Takes what the table holds out of Config::settings, in the order of paths: `path` is the swept key, the
/// value a list of values or the text of a `range(...)` or `choice(...)`. Reports entries that name no key of
/// the release, hold no list, or hold values that do not fit the key; those are left out.
std::vector<Setting> take_sweep_table(Config& config, const SchemaView& schema, Sink& sink);

}  // namespace capstan
