#include "compiler/config/exchange/format.h"

#include <algorithm>
#include <string>

#include "grammar/source/byte_order_mark.h"

namespace capstan {
namespace {

constexpr ConfigFormat kFormats[] = {
    ConfigFormat::toml,        ConfigFormat::megatron_args, ConfigFormat::functional_test,
    ConfigFormat::bridge_yaml, ConfigFormat::python,        ConfigFormat::hydra,
    ConfigFormat::hf_config};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trim(std::string_view line) {
  const auto begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1);
}

/// What the lines of a text look like, counted over its beginning.
struct Traits {
  bool shebang = false, sbatch = false, model_args = false, target_entries = false, braces = false,
       toml_header = false;
  bool python_words = false, flag_lines = false, launcher = false, hydra_signs = false;
  std::size_t spaced_assignments = 0, tight_assignments = 0, yaml_keys = 0;
};

Traits look(std::string_view text) {
  Traits traits;
  std::size_t lines = 0;
  bool first = true;
  while (!text.empty() && lines++ < 4000) {
    const auto feed = text.find('\n');
    const std::string_view whole = text.substr(0, feed);
    const std::string_view line = trim(whole);
    text.remove_prefix(feed == std::string_view::npos ? text.size() : feed + 1);
    if (line.starts_with("#!")) {
      traits.shebang = traits.shebang || (line.find("sh") != std::string_view::npos);
      traits.python_words = traits.python_words || (line.find("python") != std::string_view::npos);
    }
    if (line.starts_with("#SBATCH")) traits.sbatch = true;
    if (line.empty() || line.front() == '#') continue;
    if (first && line.front() == '{') traits.braces = true;
    first = false;
    if (whole.starts_with("MODEL_ARGS:")) traits.model_args = true;
    if (line.starts_with("_target_:") || line.starts_with("- _target_:")) traits.target_entries = true;
    if (line.starts_with("--") && line.size() > 2 && is_name(line[2]) &&
        line.find(": ") == std::string_view::npos)
      traits.flag_lines = true;
    if (line.find("torchrun ") != std::string_view::npos || line.find(".py --") != std::string_view::npos ||
        line.find(".py \\") != std::string_view::npos || line.starts_with("srun ") ||
        line.starts_with("export ")) {
      traits.launcher = true;
    }
    if (line.starts_with("import ") || line.starts_with("from ") || line.starts_with("def ") ||
        line.starts_with("cfg."))
      traits.python_words = true;
    if (whole.front() == '[' && line.find(']') != std::string_view::npos &&
        line.find('=') == std::string_view::npos)
      traits.toml_header = true;
    std::string_view key = line;
    if (key.front() == '~') traits.hydra_signs = true;
    while (!key.empty() && (key.front() == '+' || key.front() == '~')) key.remove_prefix(1);
    const bool signs = key.size() != line.size();
    std::size_t at = 0;
    while (at < key.size() && (is_name(key[at]) || key[at] == '.' || key[at] == '-')) ++at;
    if (at == 0 || at >= key.size()) continue;
    if (key[at] == '=') {
      traits.hydra_signs = traits.hydra_signs || signs;
      ++traits.tight_assignments;
    } else if (key[at] == ' ' && key.find_first_not_of(' ', at) != std::string_view::npos &&
               key[key.find_first_not_of(' ', at)] == '=') {
      ++traits.spaced_assignments;
    } else if (key[at] == ':' && (at + 1 == key.size() || key[at + 1] == ' ')) {
      ++traits.yaml_keys;
    }
  }
  return traits;
}

}  // namespace

const char* format_name(ConfigFormat format) {
  switch (format) {
    case ConfigFormat::toml:
      return "toml";
    case ConfigFormat::megatron_args:
      return "megatron-args";
    case ConfigFormat::functional_test:
      return "functional-test";
    case ConfigFormat::bridge_yaml:
      return "bridge-yaml";
    case ConfigFormat::python:
      return "python";
    case ConfigFormat::hydra:
      return "hydra";
    case ConfigFormat::hf_config:
      return "hf-config";
  }
  return "?";
}

std::optional<ConfigFormat> parse_format(std::string_view name) {
  for (const ConfigFormat format : kFormats) {
    if (name == format_name(format)) return format;
  }
  return std::nullopt;
}

ConfigFormat detect_format(std::string_view file_name, std::string_view text) {
  text.remove_prefix(byte_order_mark_size(text));
  const auto named = [&](std::string_view ending) { return file_name.ends_with(ending); };
  if (named(".toml")) return ConfigFormat::toml;
  const Traits traits = look(text);
  if (traits.model_args) return ConfigFormat::functional_test;
  if (traits.target_entries) return ConfigFormat::bridge_yaml;
  if (traits.braces) return ConfigFormat::hf_config;
  if (named(".json")) return ConfigFormat::hf_config;
  if (named(".py")) return ConfigFormat::python;
  if (traits.sbatch || traits.shebang || traits.flag_lines || named(".sh") || named(".sbatch") ||
      named(".slurm")) {
    return ConfigFormat::megatron_args;
  }
  if (named(".yaml") || named(".yml")) return ConfigFormat::bridge_yaml;
  if (traits.python_words) return ConfigFormat::python;
  if (traits.toml_header) return ConfigFormat::toml;
  if (traits.launcher) return ConfigFormat::megatron_args;
  if (traits.yaml_keys > 0 && traits.spaced_assignments == 0 && traits.tight_assignments == 0)
    return ConfigFormat::bridge_yaml;
  if (traits.hydra_signs) return ConfigFormat::hydra;
  if (traits.tight_assignments > 0 && traits.spaced_assignments == 0 && named(".txt"))
    return ConfigFormat::hydra;
  return ConfigFormat::toml;
}

}  // namespace capstan
