// `capstan legal FILE KEY`: the values of one key that the rest of the config allows, and the reason for each
// excluded one.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_legal_command(CLI::App& program, int& exit_code);

}  // namespace capstan
