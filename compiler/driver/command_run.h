// `capstan run FILE`: compile, then execute the plan with the capstan-run that stands beside this program.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_run_command(CLI::App& program, int& exit_code);

}  // namespace capstan
