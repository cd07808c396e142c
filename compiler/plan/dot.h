// Plan -> Graphviz text: one node an op, one cluster a segment, edges from the writer of an activation to its
// readers.
#pragma once

#include <string>

#include "compiler/plan/plan.h"

namespace capstan::plan {

std::string print_dot(const Plan& plan);

}  // namespace capstan::plan
