// A config of one release -> the key changes that make it one of another release: renames in both directions,
// removed keys, spellings of CUDA graph capture that moved between keys, and the stated target. Each change
// has its reason; what has no counterpart is said. Values keep their meaning: nothing is changed that both
// releases read alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/fixes/edit.h"
#include "compiler/schema/schema.h"

namespace capstan {

struct Migration {
  struct Step {
    std::string
        reason;  ///< "`model.cuda_graph_scope` is `model.cuda_graph_modules` from megatron-core 0.18.0 on"
    std::vector<KeyChange> changes;
  };
  std::vector<Step> steps;
  std::vector<KeyChange> drops;  ///< tables of sections that the release lacks, where the steps empty them
  std::vector<std::string>
      lost;  ///< "`model.x` was removed in ...; HINT": stays as it is, to be decided by a person
};

/// `config` is bound against `from`.
Migration plan_migration(const Config& config, const SchemaView& from, const SchemaView& to);

/// One key that a release lacks, said in its words: its name there, and the settings that are spelt otherwise
/// with it. Nothing when the release has no name for it, that is set as well, or does not take the value.
std::optional<std::vector<KeyChange>> native_spelling(const Config& config, const std::string& path,
                                                      const SchemaView& release);

}  // namespace capstan
