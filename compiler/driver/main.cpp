// capstan: one line per command; each lives in its own file.
#include "compiler/driver/command_lint.h"
#include "compiler/driver/program.h"

int main(int argc, char** argv) {
  using namespace capstan;
  return run_program(argc, argv,
                     {
                         add_lint_command,  // findings of configs
                     });
}
