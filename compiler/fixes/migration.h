// What a migration between releases consists of: reasons with the key changes that they stand for, and
// sentences about what stays to be decided by a person. Data only.
#pragma once

#include <string>
#include <vector>

#include "compiler/fixes/edit.h"

namespace capstan {

struct MigrationStep {
  std::string reason;  ///< "`model.cuda_graph_scope` is called `model.cuda_graph_modules` in bridge-0.6"
  std::vector<KeyChange> changes;
};

/// A key that the config leaves out and whose default differs between the releases.
struct ChangedDefault {
  std::string path;  ///< as the new release calls it
  Value before, after;
};

struct Migration {
  std::vector<MigrationStep> steps;
  std::vector<KeyChange> drops;    ///< tables of sections that the release lacks, where the steps empty them
  std::vector<std::string> lost;   ///< "`model.x` was removed in ...; HINT": what the new release cannot say
  std::vector<std::string> notes;  ///< what stays as it is and may have to be looked at
  std::vector<ChangedDefault> defaults;
};

}  // namespace capstan
