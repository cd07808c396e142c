// One config against the active rules -> diagnostics. Evaluation finds what fails (fast path); for each finding the solver
// gives the minimal set of values that take part, so that labels name those and no others, and rules that interact are
// shown as one minimal conflict. Fixes of the rules become edits and are shown only after a re-check.
#pragma once

#include <cstdint>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/ruleset/rule.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct CheckRequest {
  const Config& config;
  const SchemaView& schema;
  const ActiveRules& rules;
  const StackChoice& stack;
  const SourceMap& sources;
};

struct CheckOptions {
  bool explain = true;              ///< minimal conflicts by solver; off: every value that the rule reads is labelled
  bool suggest_fixes = true;
  std::uint32_t solver_timeout_ms = 2000;   ///< per question
};

/// Reports findings in framework order. Undecided checks give one TG002 hint that names the missing facts.
void check(const CheckRequest& request, const CheckOptions& options, Sink& sink);

}  // namespace capstan
