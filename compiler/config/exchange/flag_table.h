// Megatron-LM arguments and the config keys they stand for, from rules/flags.toml (embedded at build time).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/schema/version.h"
#include "grammar/source/source_file.h"
#include "grammar/source/value.h"

namespace capstan {

enum class FlagValue { none, integer, floating, string, boolean, any };

/// The words that an argument takes in releases [since, until) of Megatron-LM.
struct FlagWords {
  std::optional<Version> since, until;
  std::vector<std::string> words;
};

struct Flag {
  std::string name;  ///< "--num-layers"
  FlagValue takes = FlagValue::none;
  bool is_list = false;
  bool single = false;                              ///< a list of one is that one value
  bool filled = false;                              ///< a list that has one value at least (`nargs="+"`)
  std::vector<std::string> keys;                    ///< get the flag's value
  std::vector<std::pair<std::string, Value>> sets;  ///< get fixed values
  bool wins = false;                                ///< its fixed values hold wherever it stands in the list
  std::string irrelevant;                           ///< why it has no key; empty if it has
  std::optional<Version> since, until;              ///< releases of Megatron-LM that have it: [since, until)
  std::optional<Version> list_since;                ///< takes one value before this release
  std::vector<FlagWords> choices;                   ///< releases where its parser refuses other words
};

/// What the front-end sets when flags are absent.
struct ImpliedSetting {
  std::string why;
  std::vector<std::pair<std::string, Value>> sets;  ///< none for keys that are cleared
  std::vector<std::string> when, unless;            ///< flags: all present, none present
};

struct FlagTable {
  std::vector<Flag> flags;  ///< sorted by name
  std::vector<ImpliedSetting> implied;
  std::unordered_map<std::string, std::size_t> index;
  const Flag* find(std::string_view name) const;
};

/// The only words that the flag takes in a release; null where its parser takes any.
const std::vector<std::string>* words_of(const Flag& flag, const Version& release);

/// The flag as one release of Megatron-LM has it.
Flag as_of(Flag flag, const Version& release);

/// Reports RU001/RU002 problems of the text; nothing then.
std::optional<FlagTable> parse_flag_table(SourceId source, const SourceMap& sources, Sink& sink);
/// The embedded table, parsed on first use.
const FlagTable& builtin_flag_table();

}  // namespace capstan
