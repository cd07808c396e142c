// Floating-point operations that the model itself needs per step and rank: 6 per matrix weight and token (2
// forward, 4 backward), attention counted half because of the causal mask, recompute not counted. The base of
// model FLOP utilisation.
#pragma once

#include "compiler/plan/model_spec.h"

namespace capstan::plan {

double model_flops_per_step(const ModelSpec& spec);

}  // namespace capstan::plan
