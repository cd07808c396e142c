// `capstan schema`: the keys of a stack as a JSON Schema for editors.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_schema_command(CLI::App& program, int& exit_code);

}  // namespace capstan
