// GPU models by the names people write, with their compute capability. Source: NVIDIA's list of CUDA GPUs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "grammar/source/value.h"

namespace capstan {

/// Major times ten plus minor (h100: 90) of a model; upper or lower case, "NVIDIA H100 80GB HBM3" too.
/// Nothing if unknown.
std::optional<std::int64_t> compute_capability_of(std::string_view gpu);
/// A capability as configs write it: "9.0", "90", "sm_90", 9.0 or 90 all give 90. Nothing for anything else.
std::optional<std::int64_t> read_compute_capability(const Value& value);
/// "h100" of "NVIDIA H100 80GB HBM3" or "H100"; the lower-case text itself when no model is recognised.
std::string gpu_model(std::string_view gpu);

}  // namespace capstan
