// `capstan why-not FILE KEY=VALUE`: what stands against a value, and the cheapest change that would allow it.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_why_not_command(CLI::App& program, int& exit_code);

}  // namespace capstan
