// Which software stack a config is meant for: `--target`, `[target]`, component overrides, or inference from
// the dialect (native `cuda_graph_scope` means the last release where it is native; `cuda_graph_modules` the
// newest).
#pragma once

#include <optional>
#include <string>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"

namespace capstan {

struct StackChoice {
  Stack stack;
  bool assumed = false;  ///< inferred, not stated
  std::string reason;    ///< clauses for the report; empty when the stack itself is named
  Span place;            ///< where it was stated, if anywhere
};

/// Nothing when the stated stack or a component version is unknown (reported).
/// `target_option` is the value of `--target` (a stack name), empty if absent.
std::optional<StackChoice> choose_stack(const Config& config, const Schema& schema,
                                        const std::string& target_option, Sink& sink);

/// TG001 for a name that is no stack's, with the nearest one or all of them.
void report_unknown_stack(const std::string& name, const Schema& schema, Span place, Sink& sink);

/// "bridge-0.4", "bridge-0.6 (assumed: no release is stated; newest one)"
std::string stack_words(const StackChoice& choice);

}  // namespace capstan
