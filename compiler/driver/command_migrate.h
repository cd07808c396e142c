// `capstan migrate --to STACK FILE`: rewrites a config for another release, comments kept, every edit
// explained.
#pragma once

#include "compiler/driver/command.h"

namespace capstan {

void add_migrate_command(CLI::App& program, int& exit_code);

}  // namespace capstan
