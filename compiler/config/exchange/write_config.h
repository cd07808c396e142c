// A composed config -> text in a format that others read. Values that a format cannot say are listed with the
// reason, never dropped silently; read_config() of the result gives the same effective config for everything
// else.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/schema/schema.h"

namespace capstan {

enum class ExportFormat { toml, bridge_yaml, megatron_args, python, hydra, env };
const char* export_format_name(ExportFormat format);
std::optional<ExportFormat> parse_export_format(std::string_view name);

struct WrittenConfig {
  std::string text;
  struct LeftOut {
    enum class Kind {
      lost,      ///< the text does not say the setting
      added,     ///< the config does not set the key, but the text does
      respelled  ///< said by way of other keys
    };
    std::string path;
    std::string why;
    Kind kind = Kind::lost;
  };
  std::vector<LeftOut> left_out;  ///< what the text says otherwise than the config; sorted by path
};

WrittenConfig write_config(const Config& config, const SchemaView& view, ExportFormat format);

}  // namespace capstan
