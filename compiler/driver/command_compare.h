// `capstan compare --from STACK --to STACK [FILE]`: what an upgrade newly forbids or allows.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_compare_command(CLI::App& program, int& exit_code);

}  // namespace capstan
