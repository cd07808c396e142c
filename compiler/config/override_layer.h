// Arguments of `--set` and lines of environment variables -> layers for compose().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/config/compose.h"

namespace capstan {

/// One `--set` argument, which is the whole text of `source`. Nothing, with a report, when it cannot be read.
std::optional<Layer> read_override_layer(SourceId source, const SourceMap& sources, Sink& sink);

/// An environment variable of the job with the places of its name and value.
struct Variable {
  std::string name;
  Span name_span;
  std::string value;
  Span value_span;
};

/// A layer of section `env`; of a name that occurs twice the last one holds.
Layer environment_layer(const std::vector<Variable>& variables, OriginKind kind, SourceId source);

/// The variables of this process whose names a training job reads (NCCL_*, NVTE_*, CUDA_*, ...), sorted by
/// name, as the text of a source: one `NAME=VALUE` a line. Values with line breaks are left out.
std::string process_environment_text();
/// Splits such a text.
std::vector<Variable> read_process_environment(SourceId source, const SourceMap& sources);

}  // namespace capstan
