// What the fields of a Hugging Face config.json mean for the model section. Source of the meaning: the model
// bridges of NVIDIA-NeMo/Megatron-Bridge (src/megatron/bridge/models/conversion/model_bridge.py and the
// families' own bridges, release 0.4); GPT-2, GPT-NeoX and Mixtral, which have none, by their architecture.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "grammar/source/value.h"

namespace capstan {

/// The key that holds the field's value as it is; empty if there is none.
std::string_view hf_key(std::string_view field);
/// True for fields that say nothing about a model's shape (token ids, caches, versions).
bool is_hf_bookkeeping(std::string_view field);
/// "F.silu" for "silu"; empty for functions that the framework does not have.
std::string_view hf_activation(std::string_view name);
/// Names of the known families, sorted.
const std::vector<std::string>& hf_families();
/// What every model of a family has, whatever its config says. Empty for families that are not known.
const std::vector<std::pair<std::string, Value>>& hf_family(std::string_view model_type);
/// Keys whose value, where the config has no field for them, is the default of the family's own class and not
/// the framework's. Empty for families that are not known.
std::vector<std::string_view> hf_keys_with_own_defaults(std::string_view model_type);

}  // namespace capstan
