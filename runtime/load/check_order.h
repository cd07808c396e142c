// What holds between the parts of a plan: segments partition the ops and follow the stages of a step, checks
// read flags, the scalars and inputs that the executor uses exist with the right type and shape.
#pragma once

#include <optional>
#include <string>

#include "compiler/plan/plan.h"

namespace capstan::runtime {

/// The first thing that does not fit, as a clause; nothing when all does.
std::optional<std::string> check_order(const plan::Plan& plan);

}  // namespace capstan::runtime
