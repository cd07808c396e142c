// `capstan sweep FILE --over KEY=a,b,c ...`: which points of a grid are legal, the others grouped by reason.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_sweep_command(CLI::App& program, int& exit_code);

}  // namespace capstan
