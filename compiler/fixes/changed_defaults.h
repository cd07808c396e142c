// Keys that a config leaves out, whose default is another one in another release: leaving them out means
// something else there. Told are those that matter to what the config uses: not what belongs to experts,
// graphs, an optimizer or an encoder that it does not ask for.
#pragma once

#include <vector>

#include "compiler/config/config.h"
#include "compiler/fixes/migration.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// `config` is bound against `from`; sorted by path. Defaults that the framework computes are left out, and
/// those that say the same in other words (nothing, false, an empty list).
std::vector<ChangedDefault> changed_defaults(const Config& config, const SchemaView& from,
                                             const SchemaView& to);

}  // namespace capstan
