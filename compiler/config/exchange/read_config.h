// Any supported format -> layers for compose(), with places in the original text. What cannot be mapped is
// reported or recorded, never dropped: unknown arguments (EX001), values that are not literal (EX004),
// arguments without a key of their own (ReadRecord).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compiler/config/compose.h"
#include "compiler/config/exchange/format.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"
#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// What a reader met besides keys.
struct ReadRecord {
  struct Entry {
    std::string name;  ///< argument or path as written
    std::string why;
    Span place;
  };
  std::size_t total = 0;            ///< arguments or settings in the text
  std::size_t mapped = 0;           ///< of these, with a key
  std::vector<Entry> irrelevant;    ///< known, but no part of a config
  std::vector<Entry> unknown;       ///< not known: reported as EX001
  std::vector<Entry> refused;       ///< values that cannot be read: reported as EX002 and EX003
  std::vector<Entry> not_literal;   ///< known key, value not known here: reported as EX004
  std::vector<Entry> further_runs;  ///< runs or recipes of the same file that were not asked for: EX008
  /// A function sets values, too: keys that the text does not set may hold anything, not only their defaults.
  bool unset_is_open = false;
  std::vector<std::string> open_sections;  ///< sections of which the same holds
  std::vector<Comment> comments;           ///< for suppressions; TOML has its own reader
};

/// Lists the keys of the release that the record leaves open although they are not set, as open ones.
void open_unset_keys(const ReadRecord& record, const SchemaView& view, Config& config);

/// The front-end whose configs come in this format: "megatron-lm", "bridge", or empty when the text must say.
const char* frontend_of_format(ConfigFormat format);

/// Layers of the text in `file`, lowest first. `view` is what the target stack knows; it decides which of
/// several keys an argument sets. `run` names one of several runs (`MODEL_ARGS_2` of a functional test) or
/// recipes (a function of a Python file); empty: the first. Nothing when the text cannot be read at all
/// (reported).
std::optional<std::vector<Layer>> read_config(SourceId file, ConfigFormat format, const SchemaView& view,
                                              SourceMap& sources, const FileReader& reader, Sink& sink,
                                              ReadRecord& record, const std::string& run = {});

}  // namespace capstan
