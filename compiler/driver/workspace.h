// Everything that one process loads once: sources, schema, rules, and what each stack knows of them. Reads a
// config file through all stages up to the point where rules are judged. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/config/compose.h"
#include "compiler/config/exchange/read_config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/driver/config_options.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/ruleset/rule.h"
#include "compiler/schema/schema.h"
#include "compiler/solve/stack_rules.h"
#include "grammar/source/source_file.h"

namespace capstan {

/// A config that was composed, bound and given a stack. Views live as long as the workspace.
struct PreparedConfig {
  Config config;
  StackChoice stack;
  const SchemaView* schema = nullptr;
  const ActiveRules* rules = nullptr;
  StackRules* shared = nullptr;  ///< what all configs of the stack share
  ConfigFormat format = ConfigFormat::toml;
  ReadRecord record;  ///< what a reader of another format met besides keys
  bool bound = true;  ///< false: binding reported problems (Config::broken names the keys)
};

class Workspace {
 public:
  /// Reads environment files, overrides and rule folders that the options name; problems go to `sink`. A
  /// workspace with unusable options must not prepare configs: ok() is false then.
  Workspace(const ConfigOptions& options, Sink& sink);

  bool ok() const { return ok_; }
  /// Shows `sink`'s problems on standard error and throws UsageError when the options are unusable: what the
  /// command line names is at fault, not a config.
  void require_usable(const Sink& sink) const;
  SourceMap& sources() { return sources_; }
  const SourceMap& sources() const { return sources_; }
  const Schema& schema() const { return builtin_schema(); }
  const RuleSet& rules() const { return rules_; }

  /// Adds the file's text; nothing, with a report at the file, when it cannot be read. "-" is standard input,
  /// shown as `standard_input_name`; `@file` is a file of Megatron-LM arguments.
  std::optional<SourceId> read_source(const std::string& path, const std::string& standard_input_name,
                                      Sink& sink);

  /// Files that no output may replace, beside the sources: the project file, and what values of the config
  /// name (data, checkpoints, tokenizers).
  std::vector<std::string> further_inputs(const Config& config) const;

  /// Nothing when the file has a syntax error, an unreadable layer or an unknown target (all reported; beside
  /// an unknown target, keys that no release has and wrong types are, too).
  std::optional<PreparedConfig> prepare(SourceId file, Sink& sink);
  std::optional<PreparedConfig> prepare(SourceId file, const FileReader& reader, Sink& sink);

  const SchemaView& view_of(const Stack& stack) { return *of(stack).view; }
  const ActiveRules& rules_for(const Stack& stack) { return of(stack).rules; }

 private:
  struct PerStack {
    Stack stack;
    std::unique_ptr<SchemaView> view;
    ActiveRules rules;
    std::unique_ptr<StackRules> shared;
  };
  PerStack& of(const Stack& stack);
  void check_keys_of_any_release(Config config, Sink& sink);
  std::optional<std::string> read_standard_input(ReadFailure& failure);
  std::optional<std::vector<Layer>> read_layers(SourceId file, const FileReader& reader,
                                                PreparedConfig& prepared, Sink& sink);

  ConfigOptions options_;
  bool ok_ = true;
  bool standard_input_taken_ = false;
  SourceMap sources_;
  RuleSet rules_;
  std::vector<Layer> environment_layers_, override_layers_;
  std::set<SourceId> argument_files_;       ///< given as `@file`
  std::map<std::string, PerStack> stacks_;  ///< by name and versions
  PerStack* last_stack_ = nullptr;          ///< asked for last: configs come in runs of one stack
};

}  // namespace capstan
