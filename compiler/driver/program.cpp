#include "compiler/driver/program.h"

#include <malloc.h>

#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "compiler/diagnostics/render/render.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/driver/usage_error.h"

namespace capstan {
namespace {

int report_internal_error(const char* what) {
  Sink sink;
  sink.problem("TL002", std::string("internal error: ") + what, {});
  SourceMap sources;
  std::fputs(render_text(sink.diagnostics(), sources, {}, {}).c_str(), stderr);
  return kExitUsage;
}

int run(int argc, const char* const* argv, const std::vector<AddCommand>& commands) {
  CLI::App program("Checks training configs, compiles them to plans, and runs the plans.", "capstan");
  int exit_code = kExitUsage;
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("capstan ") + CAPSTAN_VERSION);
  for (const AddCommand add : commands) add(program, exit_code);
  try {
    program.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = program.exit(error);
    return code == 0 ? kExitClean : kExitUsage;
  } catch (const UsageError& error) {
    std::fprintf(stderr, "capstan: %s\n", error.what());
    return kExitUsage;
  }
  return exit_code;
}

/// A short process: memory that the solver gives back between questions would only be asked for again, page
/// by page.
void keep_freed_memory() {
#ifdef __GLIBC__
  constexpr int kNever = 1 << 30;
  mallopt(M_TRIM_THRESHOLD, kNever);
  mallopt(M_MMAP_THRESHOLD, kNever);
#endif
}

}  // namespace

int run_program(int argc, const char* const* argv, const std::vector<AddCommand>& commands) {
  keep_freed_memory();
  int exit_code = kExitUsage;
  try {
    exit_code = run(argc, argv, commands);
  } catch (const std::exception& error) {
    exit_code = report_internal_error(error.what());
  } catch (...) {
    exit_code = report_internal_error("unknown");
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::fputs("capstan: the output could not be written\n", stderr);
    return kExitUsage;
  }
  return exit_code;
}

}  // namespace capstan
