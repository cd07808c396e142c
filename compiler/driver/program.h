// Runs the program: options, the chosen subcommand, exit code. Nothing escapes it: an exception becomes one
// internal-error diagnostic on stderr and exit code 2, as does output that cannot be written.
#pragma once

#include <vector>

#include "compiler/driver/command.h"

namespace capstan {

int run_program(int argc, const char* const* argv, const std::vector<AddCommand>& commands);

}  // namespace capstan
