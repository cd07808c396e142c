// capstan-run: executes a plan.
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "runtime/execute/interrupt.h"
#include "runtime/execute/run_options.h"
#include "runtime/execute/session.h"
#ifdef CAPSTAN_HAS_CUDA
#include "runtime/device/cuda_backend.h"
#endif

int main(int argc, char** argv) {
  using namespace capstan::runtime;
  const ParsedArguments parsed =
      parse_arguments(std::vector<std::string>(argv + 1, argv + argc), CAPSTAN_VERSION);
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  install_signal_handlers();
  CudaFactory cuda;
#ifdef CAPSTAN_HAS_CUDA
  cuda = make_cuda_backend;
#endif
  try {
    return run_session(parsed.options, cuda, "capstan-run " CAPSTAN_VERSION);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "capstan-run: internal error: %s\n", error.what());
    return 2;
  }
}
