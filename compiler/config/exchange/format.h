// Formats that a config can come in, told apart by their content. The name's ending only decides between what
// the content leaves open.
#pragma once

#include <optional>
#include <string_view>

namespace capstan {

enum class ConfigFormat {
  toml,
  megatron_args,    ///< argument list, shell or batch script
  functional_test,  ///< Megatron-LM functional test YAML: MODEL_ARGS, ENV_VARS
  bridge_yaml,      ///< Megatron Bridge run_config.yaml, or any YAML of sections
  python,           ///< straight-line recipe
  hydra,            ///< lines of Hydra overrides
  hf_config         ///< Hugging Face config.json
};

const char* format_name(ConfigFormat format);  ///< "toml", "megatron-args", "functional-test", "bridge-yaml",
                                               ///< "python", "hydra", "hf-config"
std::optional<ConfigFormat> parse_format(std::string_view name);
ConfigFormat detect_format(std::string_view file_name, std::string_view text);

}  // namespace capstan
