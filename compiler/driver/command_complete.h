// `capstan complete FILE`: values for the open keys ("?" or `--free KEY`) with which everything holds.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_complete_command(CLI::App& program, int& exit_code);

}  // namespace capstan
