// `capstan diff`: how two configs differ in what the framework makes of them.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_diff_command(CLI::App& program, int& exit_code);

}  // namespace capstan
