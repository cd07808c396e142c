// Tries every fix of every check on a counterexample of its own: it must clear the finding and add none.
#pragma once

#include <vector>

#include "compiler/solve/audit.h"

namespace capstan {

std::vector<AuditFinding> audit_fixes(const RuleBook& book, SmtOptions options);

}  // namespace capstan
