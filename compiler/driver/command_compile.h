// `capstan compile FILE -o plan.json`: a checked config lowered to a plan.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_compile_command(CLI::App& program, int& exit_code);

}  // namespace capstan
