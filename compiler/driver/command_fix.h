// `capstan fix FILE`: applies verified fixes, or shows the ways out of each finding.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_fix_command(CLI::App& program, int& exit_code);

}  // namespace capstan
