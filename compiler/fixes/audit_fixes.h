// Tries every fix of every check: there must be a config that the check fires on, on which the fix clears the
// finding and adds none. Fixes of keys that the release lacks are left out.
#pragma once

#include <vector>

#include "compiler/solve/audit.h"

namespace capstan {

/// `audit` holds the configs that each rule fires on.
std::vector<AuditFinding> audit_fixes(const Subject& empty, const RuleProbes& probes, const RuleAudit& audit,
                                      const SmtOptions& options);

}  // namespace capstan
