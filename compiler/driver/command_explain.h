// `capstan explain CODE|TEXT`: a rule or one of Capstan's own codes in full; TEXT is a line of a framework's
// log, whose rule is found by the message that the framework raises.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_explain_command(CLI::App& program, int& exit_code);

}  // namespace capstan
