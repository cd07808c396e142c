// A composed config -> Megatron-LM arguments, one a line, by rules/flags.toml read backwards. Settings that
// no argument says are listed.
#pragma once

#include "compiler/config/exchange/write_config.h"

namespace capstan {

WrittenConfig write_arguments(const Config& config, const SchemaView& view);

}  // namespace capstan
