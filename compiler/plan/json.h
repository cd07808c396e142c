// Plan -> the text of plan.json (docs/plan-format.md, "File"). Deterministic: equal plans give equal bytes.
// Requires a verified plan: every floating-point value is finite.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace capstan::plan {

/// The whole file, its digest filled in, ending with a line feed.
std::string write_json(const Plan& plan);

}  // namespace capstan::plan
