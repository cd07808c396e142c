// The fast path of the rule semantics: walks the active items in order over concrete facts, applying defines
// and rewrites and judging checks. Three-valued: a check that depends on an unknown fact is `undecided`,
// never guessed. The solver's encoding (compiler/constraints) must agree with this on every fully known
// config; tests hold both together.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

enum class Truth : std::uint8_t { no, yes, unknown };

/// A check that fails, a rewrite that takes effect, or one that could not be decided.
struct Violation {
  std::uint32_t item = 0;  ///< index into RuleSet::items
  bool undecided = false;
  std::vector<FactId> missing;  ///< for undecided: the unknown facts that it depends on
  /// Values the message interpolates and labels show, as they were when the item was judged (after earlier
  /// rewrites).
  std::vector<std::pair<FactId, Value>> values;
  /// For rewrites: fact, value before, value after.
  struct Change {
    FactId fact;
    Value before, after;
  };
  std::vector<Change> changes;
};

struct Evaluation {
  std::vector<Violation> violations;  ///< in framework order
  Facts final_facts;                  ///< after all rewrites and defines
};

/// Facts are taken by value: rewrites change the copy only.
Evaluation evaluate(const ActiveRules& rules, Facts facts);

/// The items of those violations that evaluate() decides, in framework order. For searches over many configs:
/// nothing else about the violations is worked out.
std::vector<std::uint32_t> decided_violations(const ActiveRules& rules, Facts& facts);

/// The config is accepted by the framework: no check of kind *rejects* fails. Stops at the first that does
/// and gives it. For tables of many configs; the same verdict as evaluate().
std::optional<Violation> first_rejection(const ActiveRules& rules, Facts& facts);

/// One expression over the given facts; exposed for fixes, messages and tests. A set is a list.
struct Evaluated {
  Fact::State state = Fact::State::known;
  bool is_version = false;
  Value value;
  Version version;
};
Evaluated evaluate_expression(const TypedExpr& expr, const Facts& facts);

}  // namespace capstan
