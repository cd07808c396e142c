// capstan-run: executes a plan.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "grammar/source/standard_descriptors.h"
#include "runtime/execute/interrupt.h"
#include "runtime/execute/run_options.h"
#include "runtime/execute/session.h"
#ifdef CAPSTAN_HAS_CUDA
#include "runtime/device/cuda_backend.h"
#endif

int main(int argc, char** argv) {
  using namespace capstan::runtime;
  capstan::fill_standard_descriptors();
  const ParsedArguments parsed =
      parse_arguments(std::vector<std::string>(argv + 1, argv + argc), CAPSTAN_VERSION);
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    if (std::fflush(stdout) == 0) return *parsed.exit_code;
    std::fputs("capstan-run: the output could not be written\n", stderr);
    return 2;
  }
  install_signal_handlers();
  CudaFactory cuda;
#ifdef CAPSTAN_HAS_CUDA
  cuda = make_cuda_backend;
#endif
  try {
    const int exit_code = run_session(parsed.options, cuda, "capstan-run " CAPSTAN_VERSION);
    // The run is what it is, and its report lies on disk.
    if (std::fflush(stdout) != 0) std::fputs("capstan-run: the summary could not be written\n", stderr);
    return exit_code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capstan-run: internal error: %s\n", error.what());
    return 2;
  }
}
