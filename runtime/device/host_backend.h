// The reference backend: one memory mapping as arena, ops as plain functions. A recording is the list of
// resolved calls (function and pointers); replaying runs that list. Deterministic: the same plan and data
// give the same bits on every x86-64 machine, whatever the number of threads.
#pragma once

#include <memory>

#include "runtime/device/backend.h"

namespace capstan::runtime {

/// `threads`: 0 takes the hardware's number.
std::unique_ptr<Backend> make_host_backend(unsigned threads = 0);

}  // namespace capstan::runtime
