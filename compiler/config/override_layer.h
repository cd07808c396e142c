// Arguments of `--set` and lines of environment variables -> layers for compose().
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/compose.h"
#include "grammar/environment/env_file.h"

namespace capstan {

/// One `--set` argument, which is the whole text of `source`. Nothing, with a report, when it cannot be read.
std::optional<Layer> read_override_layer(SourceId source, const SourceMap& sources, Sink& sink);

/// A layer of section `env`; of a name that occurs twice the last one holds.
Layer environment_layer(const std::vector<EnvironmentVariable>& variables, OriginKind kind, SourceId source);

/// An environment file, or a batch script of Slurm, whose exports, `--nodes`, `--gpus-per-node` and GPU type
/// become a layer. Bad lines are reported; nothing then.
std::optional<Layer> read_environment_file_layer(SourceId source, const SourceMap& sources, Sink& sink);

/// True for names that a training job reads (NCCL_*, NVTE_*, CUDA_*, ...).
bool is_job_variable(std::string_view name);

/// `NAME=VALUE` of each variable of this process whose name a training job reads (NCCL_*, NVTE_*, CUDA_*,
/// ...), sorted.
std::vector<std::string> process_environment();
/// The layer of such variables, whose text becomes a source: one a line, where a value does not break lines
/// itself. Nothing, with a report, when one is no valid UTF-8.
std::optional<Layer> process_environment_layer(const std::vector<std::string>& variables, SourceMap& sources,
                                               Sink& sink);

}  // namespace capstan
