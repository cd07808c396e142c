// `capstan rules list | show | check | conformance`: the rule set itself. `capstan rules audit` is added by
// command_audit.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_rules_command(CLI::App& program, int& exit_code);

}  // namespace capstan
