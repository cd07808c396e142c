// `capstan rules audit`: the rule set's own soundness, release by release.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_rules_audit_command(CLI::App& program, int& exit_code);

}  // namespace capstan
