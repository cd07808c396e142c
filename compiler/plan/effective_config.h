// The values that a plan is made from: facts after the framework's rewrites where rules touched them, else
// the config's value, else the release's default. Typed getters report a value that cannot be used, at its
// place; every key that was asked for is remembered, so that no setting of the user is passed over in
// silence.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/facts/facts.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan::plan {

class EffectiveConfig {
 public:
  /// `final_facts`: what evaluation left, or null (then no rewrite is applied). The referenced values must
  /// outlive this.
  EffectiveConfig(const Config& config, const SchemaView& schema, const Facts* final_facts,
                  const SourceMap* sources, Sink& sink);

  /// None when nobody set the key and it has no default (or the default is none).
  Value value(std::string_view path);
  bool is_set(std::string_view path) const { return config_.find(path) != nullptr; }

  // Each gives `otherwise` when the value is none, and reports LW003 and gives `otherwise` when it has
  // another kind or lies outside the range.
  bool boolean(std::string_view path, bool otherwise);
  std::int64_t integer(std::string_view path, std::int64_t low, std::int64_t high, std::int64_t otherwise);
  std::optional<std::int64_t> integer(std::string_view path, std::int64_t low, std::int64_t high);
  double number(std::string_view path, double low, double high, double otherwise);
  std::optional<double> number(std::string_view path, double low, double high);
  std::string text(std::string_view path, std::string_view otherwise);
  /// A file name; a relative one is taken from the folder of the config file that names it. Valid UTF-8,
  /// else LW003.
  std::string file_name(std::string_view path);
  /// A list of strings, or a string split at commas.
  std::vector<std::string> words(std::string_view path);

  /// Reports `code` at the key's place; `help` is the way out.
  void problem(const char* code, std::string_view path, std::string message, std::string help = {});
  void require(std::string_view path, const char* what);  ///< LW002
  /// Whether a problem was reported at the key: what follows from its value is then no news.
  bool was_refused(std::string_view path) const { return refused_.find(path) != refused_.end(); }
  /// Counts the key as dealt with, without reading it.
  void note_used(std::string_view path) { used_.insert(std::string(path)); }
  bool was_used(std::string_view path) const { return used_.find(path) != used_.end(); }

  const Config& config() const { return config_; }
  const SchemaView& schema() const { return schema_; }
  Sink& sink() { return sink_; }
  /// The release's default as a Value; nothing when the stack does not know the key or the default is
  /// computed.
  std::optional<Value> default_of(std::string_view path) const;

 private:
  Span place_of(std::string_view path) const;
  std::string file_name_as_stated(std::string_view path);

  const Config& config_;
  const SchemaView& schema_;
  const Facts* final_facts_;
  const SourceMap* sources_;
  Sink& sink_;
  std::set<std::string, std::less<>> refused_;  ///< keys that a problem was told of
  std::set<std::string, std::less<>> used_;
};

}  // namespace capstan::plan
