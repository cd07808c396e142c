// `capstan export`: a config in a format that others read.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_export_command(CLI::App& program, int& exit_code);

}  // namespace capstan
