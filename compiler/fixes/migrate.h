// A config of one release -> the key changes that make it one of another release: renames in both directions,
// removed keys, spellings of CUDA graph capture that moved between keys, and the stated target. Each change
// has its reason; what has no counterpart is said. Values keep their meaning: nothing is changed that both
// releases read alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/fixes/migration.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// `config` is bound against `from`. Empty for a config that states the release `to` already.
Migration plan_migration(const Config& config, const SchemaView& from, const SchemaView& to);

/// One key that a release lacks, said in its words: its name there, and the settings that are spelt otherwise
/// with it. Nothing when the release has no name for it, that is set as well, or does not take the value.
std::optional<std::vector<KeyChange>> native_spelling(const Config& config, const std::string& path,
                                                      const SchemaView& release);

}  // namespace capstan
