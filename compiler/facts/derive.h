// Config + stack -> Facts: every schema key of the stack with its set value or its release default,
// environment variables (absent: none), target facts (component versions, GPU architecture), cluster facts.
// No rule is applied here.
#pragma once

#include <vector>

#include "compiler/config/config.h"
#include "compiler/facts/facts.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// `names` must hold every name that the rules read (resolve() interned them); other names are not
/// materialised.
Facts derive_facts(const Config& config, const SchemaView& schema, const FactNames& names);

/// For many configs of one stack: what no config sets is derived once. The view and the names must outlive it
/// and stay as they are.
class StackFacts {
 public:
  StackFacts(const SchemaView& schema, const FactNames& names);
  /// Equals derive_facts().
  Facts of(const Config& config) const;

 private:
  Facts unset_;                    ///< of the empty config
  std::vector<FactId> dependent_;  ///< may depend on settings of other names: the target's and the cluster's
};

}  // namespace capstan
