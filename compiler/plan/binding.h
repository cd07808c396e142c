// The parts of bind_model, one per subject; each reads its keys and fills its part of the spec.
#pragma once

#include <string_view>

#include "compiler/plan/effective_config.h"
#include "compiler/plan/model_spec.h"

namespace capstan::plan {

// bind_architecture.cpp: dims, norm, activation, positions, biases, dropout, initial weights
void bind_architecture(EffectiveConfig& config, ModelSpec& spec);
// bind_precision.cpp: dtypes of parameters, gradients, masters
void bind_precision(EffectiveConfig& config, ModelSpec& spec);
/// What fp8 products ask of extents; call when all are known.
void check_fp8_extents(EffectiveConfig& config, const ModelSpec& spec);
// bind_training.cpp: batch, steps, optimizer, learning-rate schedule, data, checks, seeds
void bind_training(EffectiveConfig& config, ModelSpec& spec);
// bind_capture.cpp: recompute and graphs
void bind_recompute(EffectiveConfig& config, ModelSpec& spec);
void bind_capture(EffectiveConfig& config, ModelSpec& spec);
/// Says when the run ends before anything is captured or replayed; call when steps and capture are known.
void check_warmup(EffectiveConfig& config, const ModelSpec& spec);
// unsupported.cpp: refuses what the runtime cannot do; call before the others
void refuse_unsupported(EffectiveConfig& config);
/// Whether a setting of the key, or of its section, is refused unless it switches something off.
bool is_refused_where_set(std::string_view path);
/// Judges every setting that nothing has read; call last.
void judge_unread_settings(EffectiveConfig& config);

}  // namespace capstan::plan
