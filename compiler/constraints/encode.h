// Facts and rules -> terms. Each key that is opened has a finite domain; every other fact is the constant it
// is. Defines and rewrites are encoded in framework order as versions of a fact (one per writer), only as far
// as a question needs them. On a config where nothing is open every term folds to true or false and agrees
// with evaluate().
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/constraints/scalar.h"
#include "compiler/constraints/smt.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

/// One state a key may have. `unknown` stands for "any value": a rule that depends on it is undecided, not
/// violated.
struct Choice {
  bool set = true;
  bool unknown = false;
  Value value;
};

struct Domain {
  std::vector<Choice> choices;  ///< the first is the config's current state
  bool any_subset = false;      ///< also: any list of distinct `tokens`
  std::vector<std::string> tokens;
};

/// Who writes which fact, for one set of active rules; built once and shared by all questions.
class RuleIndex {
 public:
  explicit RuleIndex(const ActiveRules& rules);
  const ActiveRules& rules() const { return rules_; }
  const RuleItem& item(std::uint32_t position) const { return rules_.set->items[rules_.items[position]]; }
  std::size_t size() const { return rules_.items.size(); }
  /// Position of the last active item before `position` that writes the fact.
  std::optional<std::uint32_t> last_writer(FactId fact, std::uint32_t position) const;
  /// Facts as they are before any rule on which the item at `position` depends; sorted.
  const std::vector<FactId>& inputs(std::uint32_t position) const;
  /// Positions of the checks, in order.
  const std::vector<std::uint32_t>& checks() const { return checks_; }
  /// Position of an item of the rule set among the active ones.
  std::optional<std::uint32_t> position_of(std::uint32_t item) const;
  /// Checks that depend on the fact; sorted.
  const std::vector<std::uint32_t>& checks_reading(FactId fact) const;

 private:
  ActiveRules rules_;
  std::unordered_map<FactId, std::vector<std::uint32_t>> writers_;
  std::vector<std::vector<FactId>> inputs_;
  std::vector<std::uint32_t> checks_;
  std::vector<std::uint32_t> position_of_item_;  // by item of the rule set; kAbsent when not active
  std::unordered_map<FactId, std::vector<std::uint32_t>> readers_;
};

/// A value as a choice between guarded cases, at most one of which is a set with symbolic members.
struct Symbolic {
  struct Case {
    Term guard;
    Scalar scalar;
  };
  std::vector<Case> cases;
  Term set_guard = kFalse;
  std::vector<std::pair<Value, Term>> members;
};

/// A condition: neither `yes` nor `no` means undecided.
struct Condition {
  Term yes, no;
};

/// Must outlive the questions to its Smt: it names the variables.
class Encoding {
 public:
  Encoding(Smt& smt, const RuleIndex& index, const Facts& facts);

  /// Opens a key, before any term that depends on it was made; one that is open stays as it is.
  void open(FactId key, Domain domain);
  bool is_open(FactId key) const { return variables_.contains(key); }
  /// Open keys in ascending order.
  std::vector<FactId> open_keys() const;
  const Domain& domain(FactId key) const { return variables_.at(key).domain; }
  /// The key has its current state (true for keys that are not open).
  Term stays(FactId key) const;
  Term chosen(FactId key, std::size_t choice) const;
  /// The key is some list of distinct tokens (domains with any_subset).
  Term is_subset(FactId key) const;
  Term member(FactId key, std::size_t token) const;

  /// The check at `position` is violated, or cannot be decided.
  Term violated(std::uint32_t position);
  Term undecided(std::uint32_t position);
  /// The fact's value before the item at `position` (size() for the final value).
  const Symbolic& fact_before(FactId fact, std::uint32_t position);
  Symbolic evaluate(const TypedExpr& expr, std::uint32_t position);
  Condition condition(const TypedExpr& expr, std::uint32_t position);
  /// The value equals `scalar` (by rule_equal).
  Term equals(const Symbolic& value, const Scalar& scalar);

  /// An open key in the last model of the solver.
  Choice decode(FactId key) const;
  Scalar decode(const Symbolic& value) const;
  /// A value had more cases than the encoding follows; what depends on it is undecided.
  bool too_wide() const { return too_wide_; }

 private:
  struct Variable {
    const std::string* name = nullptr;
    Domain domain;
    std::vector<Term> choices;
    Term subset = kFalse;
    std::vector<Term> members;
    std::string choice_name(std::size_t choice) const;
  };
  struct SetView {
    std::vector<std::pair<Value, Term>> members;
    Term unknown;
  };

  Symbolic initial(FactId fact);
  Symbolic merge(Term condition, const Symbolic& then, const Symbolic& otherwise);
  Symbolic from_condition(const Condition& condition);
  Condition to_condition(const Symbolic& value);
  Condition decided(Term yes, Term unknown);
  SetView to_set(const Symbolic& value);
  Symbolic from_set(SetView set);
  Term unknown_guard(const Symbolic& value);
  void add_case(Symbolic& value, Term guard, const Scalar& scalar);
  template <typename Apply>
  Symbolic combine(const Symbolic& a, const Symbolic& b, const Apply& apply);
  Condition equal(const Symbolic& a, const Symbolic& b);
  Condition contains(const Symbolic& element, const Symbolic& set);
  Symbolic set_operation(ExprOp op, const Symbolic& a, const Symbolic& b);
  Condition set_comparison(ExprOp op, const Symbolic& a, const Symbolic& b);
  Symbolic cardinality(const SetView& set);
  Symbolic call(const TypedExpr& expr, std::uint32_t position);
  Condition is_test(const TypedExpr& expr, std::uint32_t position);
  Term set_term(FactId fact);
  Condition judge(std::uint32_t position);

  Smt& smt_;
  const RuleIndex& index_;
  const Facts& facts_;
  std::map<FactId, Variable> variables_;
  std::unordered_map<std::uint64_t, Symbolic> versions_;   // (fact, writer position + 1), 0: initial
  std::unordered_map<std::uint32_t, Condition> verdicts_;  // yes: holds, no: violated
  bool too_wide_ = false;
};

}  // namespace capstan
