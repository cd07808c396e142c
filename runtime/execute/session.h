// One invocation of capstan-run from options to exit code. Everything that can be refused is refused before
// the device allocates: the plan, the data, the checkpoint, the run directory.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "runtime/device/backend.h"
#include "runtime/execute/run_options.h"

namespace capstan::runtime {

/// Opens a CUDA device; empty where the program was built without.
using CudaFactory = std::function<Outcome<std::unique_ptr<Backend>>(int device)>;

/// Prints diagnostics and progress to standard error, what a person wants to know at the end to standard
/// output, and writes the run directory. Exit codes: 0, 4, 5, or 128 + signal.
int run_session(const RunOptions& options, const CudaFactory& cuda, const std::string& program);

}  // namespace capstan::runtime
