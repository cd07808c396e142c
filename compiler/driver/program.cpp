#include "compiler/driver/program.h"

#include <malloc.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/render/display_text.h"
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

/// An empty value would be taken as an option that was not given. Whoever writes one means something else: a
/// variable of the shell that is not set.
void refuse_empty_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    if (option->get_expected_min() == 0) continue;  // a flag
    option->check([](const std::string& value) {
      return value.empty() ? std::string("the value is empty") : std::string();
    });
  }
  for (CLI::App* one : command.get_subcommands([](CLI::App*) { return true; })) refuse_empty_values(*one);
}

/// `--target=` takes the word behind it as its value: who wrote it meant nothing, or something else.
void refuse_bare_equals(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--") return;
    if (word.starts_with("--") && word.find('=') == word.size() - 1)
      throw UsageError(fmt::format("`{}` has no value", word));
  }
}

/// Help and version go to standard output. What is wrong with the words is told with them, whatever they
/// hold.
int refuse_words(const CLI::App& program, const CLI::ParseError& error) {
  std::ostringstream out, problems;
  const int code = program.exit(error, out, problems);
  std::fputs(out.str().c_str(), stdout);
  std::fputs(safe_text(problems.str(), true).c_str(), stderr);
  return code == 0 ? kExitClean : kExitUsage;
}

int run(int argc, const char* const* argv, const std::vector<AddCommand>& commands) {
  CLI::App program("Checks training configs, compiles them to plans, and runs the plans.", "capstan");
  int exit_code = kExitUsage;
  program.require_subcommand(1);
  program.set_version_flag("--version", std::string("capstan ") + CAPSTAN_VERSION);
  for (const AddCommand add : commands) add(program, exit_code);
  refuse_empty_values(program);
  try {
    refuse_bare_equals(argc, argv);
    program.parse(argc, argv);
  } catch (const CLI::RequiredError& error) {
    // What is not known is more worth saying than what is missing because of it.
    for (const std::string& word : program.remaining(true)) {
      const bool option = word.size() > 1 && word.front() == '-';
      if (!option && !program.get_subcommands().empty()) continue;
      std::string name = "capstan";
      for (const CLI::App* command = &program; !command->get_subcommands().empty();) {
        command = command->get_subcommands().front();
        name += " " + command->get_name();
      }
      std::fprintf(stderr, "capstan: `%s` is no %s of `%s`; see `%s --help`\n", safe_text(word).c_str(),
                   option ? "option" : "command", name.c_str(), name.c_str());
      return kExitUsage;
    }
    return refuse_words(program, error);
  } catch (const CLI::ParseError& error) {
    return refuse_words(program, error);
  } catch (const UsageError& error) {
    const std::string text = safe_text(error.what(), true);
    if (!text.empty()) std::fprintf(stderr, "capstan: %s\n", text.c_str());
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
  std::signal(SIGXFSZ, SIG_IGN);  // a file that may not grow further is then an error of write(), and told
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
