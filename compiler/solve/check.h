// One config against the active rules -> findings. Evaluation finds what fails (fast path); for each finding
// the solver gives the minimal set of values that take part, so that labels name those and no others, and
// rules that interact are shown as one minimal conflict. Fixes are added by compiler/fixes/suggest.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/rule.h"
#include "compiler/schema/schema.h"
#include "compiler/solve/stack_rules.h"
#include "compiler/solve/subject.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct CheckRequest {
  const Config& config;
  const SchemaView& schema;
  const ActiveRules& rules;
  const StackChoice& stack;
  const SourceMap& sources;
  /// Made of `schema` and `rules`; null: made here. A caller with many configs of one stack keeps one.
  StackRules* shared = nullptr;
};

struct CheckOptions {
  bool explain = true;  ///< minimal conflicts by solver; off: every value that the rule reads is labelled
  bool suggest_fixes = true;  ///< read by check_and_suggest()
  /// Fingerprints of findings for which check_and_suggest() searches no fixes; null: none.
  const std::set<std::string>* without_fixes = nullptr;
  std::uint32_t solver_timeout_ms = 2000;  ///< per question
};

struct Finding {
  static constexpr std::uint32_t kNoItem = 0xffffffffu;
  Diagnostic diagnostic;
  std::uint32_t item = kNoItem;  ///< index into RuleSet::items; kNoItem for the report of undecided rules
};

/// One config judged once, for all that is said about it. The request must outlive it.
class Judgement {
 public:
  explicit Judgement(const CheckRequest& request);
  const Evaluation& evaluation() const { return evaluation_; }
  /// Made on first use: a clean config is no subject of questions.
  const Subject& subject();
  const RuleBook& book() { return shared_.book(); }
  ConflictMemo& memo() { return shared_.memo(); }
  /// Facts of another config on the same stack.
  Facts facts_of(const Config& config) { return shared_.facts_of(config); }

 private:
  const CheckRequest& request_;
  std::unique_ptr<StackRules> own_;
  StackRules& shared_;
  Evaluation evaluation_;
  std::optional<Subject> subject_;
};

/// Findings in framework order; rules that read a key of Config::broken stay silent. Undecided checks give
/// one TG002 hint that names the missing facts.
std::vector<Finding> find_violations(const CheckRequest& request, Judgement& judgement,
                                     const CheckOptions& options);

/// Reports them, without fixes.
void check(const CheckRequest& request, const CheckOptions& options, Sink& sink);

}  // namespace capstan
