// What a `pipeline_model_parallel_layout` says: a string such as "Et*3|(tt|)*2tL" or a list of stages, each a
// list of layer names. Read as Megatron Core reads it (PipelineParallelLayerLayout, releases 0.14 to 0.19);
// pure.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "grammar/source/value.h"

namespace capstan {

enum class PipelineLayer { embedding, decoder, mtp, loss, encoder };

/// One entry a stage, in the order of the layers: stage i lies on pipeline rank i % P, as its (i / P)-th
/// chunk.
using PipelineLayout = std::vector<std::vector<PipelineLayer>>;

/// None for what the framework cannot read, and for layouts of more than 65,536 stages or layers.
std::optional<PipelineLayout> read_pipeline_layout(const Value& layout);

/// One fact about a layout: "stages" (count), "embedding", "decoder", "mtp", "loss", "encoder" (count of
/// those layers), "first", "last" (name of the outermost layers), "first_mtp_stage", "last_mtp_stage"
/// (index), "decoder_after_mtp" (bool). None where the layout cannot be read or has no such thing.
Value pipeline_layout_fact(const Value& layout, std::string_view fact);

}  // namespace capstan
