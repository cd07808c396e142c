// The composed training config: every key that some layer set, with its typed value and where it came from.
// Later layers won; what they replaced stays in `history`. Nothing is rewritten here: defaults and derived
// values are facts.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/schema/schema.h"
#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

enum class OriginKind {
  file,               ///< the checked file
  extended_file,      ///< a file named by `extends`
  override_argument,  ///< --set
  environment,        ///< the process environment (only with --env-from-process)
  environment_file,   ///< --env-file or the exports of a batch script
  imported,           ///< computed by a reader from a flag of another format
  default_value,      ///< schema default of the release
  derived,            ///< computed from other facts
  assumed             ///< stack inference, missing target
};
const char* origin_kind_name(OriginKind kind);

struct Origin {
  OriginKind kind = OriginKind::default_value;
  Span key;    ///< the key's text, if any
  Span value;  ///< the value's text, if any
};

struct Setting {
  std::string path;  ///< "model.cuda_graph_impl", "env.NCCL_ALGO", "target.stack"
  Value value;
  Origin origin;
  std::vector<Span> items;      ///< for lists: the place of each element
  std::vector<Origin> history;  ///< what later layers replaced, oldest first
  std::string
      unsupported;  ///< what stands there ("date-time") when no Value can hold it; the value is then none
};

struct Config {
  std::map<std::string, Setting, std::less<>> settings;  ///< by path; deterministic order
  std::vector<SourceId> files;                           ///< all files that took part, in the order of layers
  /// Those of `files` that are no TOML: fixes are said in words, not as edits.
  std::vector<SourceId> foreign;
  /// Where each top-level name was first written; a name that is no table has a setting without a dot in its
  /// path.
  std::map<std::string, Span, std::less<>> sections;
  /// Keys that a type or value problem was reported for: rules that read them stay silent.
  std::vector<std::string> broken;
  /// Keys written as "?" (open): complete and legal look for values.
  std::vector<std::string> open;

  const Setting* find(std::string_view path) const {
    auto found = settings.find(path);
    return found == settings.end() ? nullptr : &found->second;
  }
};

}  // namespace capstan
