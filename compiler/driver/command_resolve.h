// `capstan resolve`: every value of a config with its origin, and a digest of them all.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_resolve_command(CLI::App& program, int& exit_code);

}  // namespace capstan
