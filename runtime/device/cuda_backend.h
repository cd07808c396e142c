// The CUDA backend's factory. Defined in device/cuda_backend_cuda.cpp and linked only where CAPSTAN_HAS_CUDA
// is set; this header needs no CUDA header.
#pragma once

#include <memory>

#include "runtime/device/backend.h"

namespace capstan::runtime {

/// Opens a CUDA device by index. RN021 when there is no driver, no device or one that the build has no code
/// for.
Outcome<std::unique_ptr<Backend>> make_cuda_backend(int device_index = 0);

}  // namespace capstan::runtime
