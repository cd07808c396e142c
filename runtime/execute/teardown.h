// Releases a backend in the order that the plan says, under a watchdog: when the device does not answer in
// time, the process says RN034 on standard error and ends with exit code 4, because a hung driver call cannot
// be interrupted.
#pragma once

#include <chrono>

#include "runtime/device/backend.h"

namespace capstan::runtime {

/// The first failure; the remaining parts are released all the same.
Status tear_down(const plan::Plan& plan, Backend& backend, std::chrono::seconds limit);

}  // namespace capstan::runtime
