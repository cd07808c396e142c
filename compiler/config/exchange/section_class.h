// Classes of Megatron Bridge whose defaults are those of a section's keys. Takes a section and a class name
// as a recipe or a `_target_` writes it.
#pragma once

#include <string_view>

namespace capstan {

/// False for other classes, whose fields may have any defaults: `Llama31ModelProvider8B` for `model`.
/// Source: ConfigContainer in Megatron-Bridge src/megatron/bridge/training/config.py, releases 0.2 to 0.6.
bool has_defaults_of_section(std::string_view section, std::string_view class_name);

}  // namespace capstan
