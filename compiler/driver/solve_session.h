// What the solver's commands share: one config prepared with its rules indexed, key arguments read and typed,
// conflicts and repairs as text and JSON. Problems of the config itself are reported like lint does.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/driver/config_options.h"
#include "compiler/driver/workspace.h"
#include "compiler/solve/subject.h"

namespace capstan {

struct SolverOptions {
  std::uint32_t timeout_ms = 5000;  ///< per question
  std::string format = "text";      ///< text, json
  std::string emit;                 ///< "smt2": the questions instead of the answer
};
void add_solver_options(CLI::App& command, SolverOptions& options);
/// `--free KEY`
void add_free_option(CLI::App& command, std::vector<std::string>& free);

/// Keys written as "?" and those of `--free`.
struct OpenPaths {
  std::vector<FactId> read;         ///< by rules of the stack; distinct
  std::vector<std::string> unread;  ///< any value will do
};

/// UsageError, with the nearest name, for a stack that nobody knows.
const Stack& stack_named(const Schema& schema, const std::string& name);

class SolveSession {
 public:
  SolveSession(const ConfigOptions& config, const SolverOptions& options);
  /// Reads the file; false when it cannot be judged (reported to standard error with its places; exit code
  /// 1). UsageError for options that cannot be used.
  bool open(const std::string& path);
  /// Judges a config without any setting on a stack (commands that need no file).
  void open_empty(const std::string& stack);

  Workspace& workspace() { return workspace_; }
  const PreparedConfig& prepared() const { return *prepared_; }
  const RuleBook& book() const { return *book_; }
  const Subject& subject() const { return *subject_; }
  SmtOptions smt() const { return smt_; }

  /// A key of the target's release that rules read; nothing for a known key that no rule reads. UsageError
  /// for an unknown key.
  std::optional<FactId> find_key(const std::string& path) const;
  /// UsageError for an unknown key.
  OpenPaths open_paths(const std::vector<std::string>& free) const;
  /// `KEY=VALUE` as `--set` reads it, with the value fitted to the key's type. UsageError when it does not
  /// fit.
  std::pair<std::string, Value> read_assignment(const std::string& text);
  /// `KEY=a,b,c`, `KEY=choice(...)`, `KEY=range(...)`.
  std::pair<std::string, std::vector<Value>> read_axis(const std::string& text);
  /// "recipes/a.toml:12:3", "default", "--set", "bridge-0.4"
  std::string place_of(FactId fact) const;
  /// Prints the answer, or with `--emit smt2` the questions that were asked. UsageError when none was.
  void print(const std::string& text) const;
  /// The same, with the answer on standard error.
  void print_aside(const std::string& text) const;

 private:
  std::string checked_path(const std::vector<std::string>& parts) const;
  Value fitted(const std::string& path, Value value) const;

  SolverOptions options_;
  Sink setup_;
  Workspace workspace_;
  SmtOptions smt_;
  std::optional<PreparedConfig> prepared_;
  std::unique_ptr<RuleBook> book_;
  std::unique_ptr<Subject> subject_;
};

}  // namespace capstan
