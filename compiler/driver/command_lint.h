// `capstan lint FILE...`: all findings of training configs.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_lint_command(CLI::App& program, int& exit_code);

}  // namespace capstan
