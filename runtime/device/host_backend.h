// The reference backend: one memory mapping as arena, ops as plain functions. A recording is the list of
// resolved calls (function and pointers); replaying runs that list. Deterministic: the same plan and data
// give the same bits on one machine, whatever the number of threads; on another one the C library's exp and
// log may round differently.
#pragma once

#include <memory>

#include "runtime/device/backend.h"

namespace capstan::runtime {

/// `threads`: 0 takes the hardware's number.
std::unique_ptr<Backend> make_host_backend(unsigned threads = 0);

}  // namespace capstan::runtime
