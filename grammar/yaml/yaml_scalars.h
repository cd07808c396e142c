// What a plain YAML scalar means: by the core schema of YAML 1.2, or as Python's loaders read YAML 1.1
// (yaml.safe_load, and OmegaConf's, which knows more ways to write a float). Takes the text without quotes;
// pure.
#pragma once

#include <string_view>

#include "grammar/source/value.h"

namespace capstan {

enum class YamlScalars {
  core,   ///< YAML 1.2, as yq and JSON read it
  python  ///< YAML 1.1: `yes`, `on`, octal `010`, `1_000`, `1:30`; floats as OmegaConf knows them
};

/// Integers beyond 64 bits become floats.
Value typed_yaml_scalar(std::string_view text, YamlScalars scalars);

/// A number for OmegaConf that is text for yaml.safe_load: `1e-5`, `1.0e5`, `-.5`.
bool is_text_for_safe_load(std::string_view text);

}  // namespace capstan
