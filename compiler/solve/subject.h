// What a question of the solver is about: one config on one stack with its active rules, facts and
// evaluation. Evaluating a changed config is a matter of microseconds, so searches let the solver propose and
// the evaluator confirm.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/constraints/encode.h"
#include "compiler/facts/facts.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/reevaluate.h"
#include "compiler/ruleset/rule.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// What rules say about each fact beyond its type: values worth trying. Built once per set of active rules.
class Candidates {
 public:
  explicit Candidates(const RuleIndex& index);
  /// Strings and numbers that rules compare the fact with, directly or through defines; in a fixed order.
  const std::vector<Value>& literals(FactId fact) const;
  /// Facts that stand in one comparison or calculation with this one.
  const std::vector<FactId>& mates(FactId fact) const;
  /// Values that fixes of rules set the fact to, in framework order.
  const std::vector<Value>& advised(FactId fact) const;

 private:
  void advise(const ResolvedAction& action);

  std::vector<std::vector<Value>> literals_;  // by group
  std::vector<std::vector<FactId>> members_;  // by group
  std::unordered_map<FactId, std::size_t> group_;
  std::unordered_map<FactId, std::vector<Value>> advised_;
};

/// Everything that does not depend on one config: rules of one stack, indexed.
struct RuleBook {
  const SchemaView& schema;
  ActiveRules rules;
  RuleIndex index;
  Candidates candidates;
  RuleDependences dependences;
  std::vector<KeyView> keys;       ///< by fact
  std::vector<FactId> changeable;  ///< facts that a config of the stack can set for the framework; sorted
  RuleBook(const SchemaView& schema_view, const ActiveRules& active);
  RuleBook(const RuleBook&) = delete;
  RuleBook& operator=(const RuleBook&) = delete;
};

/// Not thread-safe: what questions about variants need is made on first use.
struct Subject {
  const Config& config;
  const RuleBook& book;
  const Facts facts;
  Subject(const Config& checked, const RuleBook& rule_book);
  /// With facts that were derived already.
  Subject(const Config& checked, const RuleBook& rule_book, Facts derived);
  Subject(const Subject&) = delete;
  Subject& operator=(const Subject&) = delete;
  const SchemaView& schema() const { return book.schema; }
  const RuleIndex& index() const { return book.index; }
  const std::string& name(FactId fact) const { return facts.names->name(fact); }
  KeyView key(FactId fact) const { return book.keys[fact]; }
  Reevaluator& variants() const;
  /// A problem of syntax or type was reported for the key, so nothing is said about it.
  bool is_broken(FactId fact) const;
  bool is_open(FactId fact) const;

 private:
  std::vector<FactId> broken_, open_;  // sorted
  mutable std::unique_ptr<Reevaluator> variants_;
};

/// The check decides whether a config is legal: a finding of severity error that is no advice.
bool forbids(const RuleItem& item);
/// The item at `position` depends on one of the facts.
bool reads_any(const RuleIndex& index, std::uint32_t position, const std::vector<FactId>& facts);

/// The facts with some keys changed.
Facts with_changes(const Facts& facts, const std::vector<Assignment>& changes);
/// The facts with some keys left open: rules that depend on them are undecided.
Facts with_open(const Facts& facts, const std::vector<FactId>& open);
/// Positions of the checks that are violated, in order: with these facts, or in the subject with some keys
/// changed.
std::vector<std::uint32_t> violated_checks(const RuleBook& book, Facts facts);
std::vector<std::uint32_t> violated_checks(const Subject& subject,
                                           const std::vector<Assignment>& changes = {});

}  // namespace capstan
