// capstan: one line per command; each lives in its own file.
#include "compiler/driver/command_compare.h"
#include "compiler/driver/command_compile.h"
#include "compiler/driver/command_complete.h"
#include "compiler/driver/command_diff.h"
#include "compiler/driver/command_explain.h"
#include "compiler/driver/command_export.h"
#include "compiler/driver/command_fix.h"
#include "compiler/driver/command_import.h"
#include "compiler/driver/command_legal.h"
#include "compiler/driver/command_lint.h"
#include "compiler/driver/command_migrate.h"
#include "compiler/driver/command_resolve.h"
#include "compiler/driver/command_rules.h"
#include "compiler/driver/command_rules_audit.h"
#include "compiler/driver/command_run.h"
#include "compiler/driver/command_schema.h"
#include "compiler/driver/command_sweep.h"
#include "compiler/driver/command_why_not.h"
#include "compiler/driver/program.h"
#include "grammar/source/standard_descriptors.h"

#include <csignal>

int main(int argc, char** argv) {
  using namespace capstan;
  fill_standard_descriptors();
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow is a failed write with a reason, not the end
  return run_program(argc, argv,
                     {
                         add_lint_command,         // findings of configs
                         add_fix_command,          // verified fixes, applied
                         add_why_not_command,      // what stands against a value
                         add_legal_command,        // the values of one key
                         add_complete_command,     // values for open keys
                         add_sweep_command,        // the legal points of a grid
                         add_compare_command,      // two stacks
                         add_compile_command,      // a config to a plan
                         add_run_command,          // compile and train
                         add_migrate_command,      // a config of one release for another one
                         add_schema_command,       // keys for editors
                         add_explain_command,      // a rule by its code or a log line
                         add_rules_command,        // the rule set itself
                         add_rules_audit_command,  // its soundness; after add_rules_command
                         add_import_command,       // another format to TOML
                         add_export_command,       // a config to another format
                         add_diff_command,         // how two configs differ
                         add_resolve_command,      // every value with its origin
                     });
}
