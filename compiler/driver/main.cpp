// capstan: one line per command; each lives in its own file.
#include "compiler/driver/command_compile.h"
#include "compiler/driver/command_diff.h"
#include "compiler/driver/command_export.h"
#include "compiler/driver/command_import.h"
#include "compiler/driver/command_lint.h"
#include "compiler/driver/command_rules.h"
#include "compiler/driver/command_migrate.h"
#include "compiler/driver/command_resolve.h"
#include "compiler/driver/command_run.h"
#include "compiler/driver/command_schema.h"
#include "compiler/driver/program.h"

int main(int argc, char** argv) {
  using namespace capstan;
  return run_program(argc, argv,
                     {
                         add_lint_command,     // findings of configs
                         add_compile_command,  // a config to a plan
                         add_run_command,      // compile and train
                         add_migrate_command,  // a config of one release for another one
                         add_schema_command,   // keys for editors
                         add_rules_command,    // the rule set itself
                         add_import_command,   // another format to TOML
                         add_export_command,   // a config to another format
                         add_diff_command,     // how two configs differ
                         add_resolve_command,  // every value with its origin
                     });
}
