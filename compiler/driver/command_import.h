// `capstan import`: a config of another format as TOML.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_import_command(CLI::App& program, int& exit_code);

}  // namespace capstan
