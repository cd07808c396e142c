// ModelSpec -> plan before the passes: every op of a training step in issue order, explicit backward, no
// offsets, no segments, no recompute. A dense decoder-only transformer, pre-norm.
#pragma once

#include "compiler/plan/model_spec.h"
#include "compiler/plan/plan.h"

namespace capstan::plan {

Plan lower(const ModelSpec& spec);

}  // namespace capstan::plan
