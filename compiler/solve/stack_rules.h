// What the checks of many configs of one stack share: its rules, the facts that no config sets, the rules
// indexed for the solver, and what was explained before. Each part is made on first use, since a clean config
// needs no index. Not thread-safe.
#pragma once

#include <optional>

#include "compiler/facts/derive.h"
#include "compiler/ruleset/rule.h"
#include "compiler/schema/schema.h"
#include "compiler/solve/conflict_memo.h"
#include "compiler/solve/subject.h"

namespace capstan {

class StackRules {
 public:
  /// Both must outlive it.
  StackRules(const SchemaView& schema, const ActiveRules& rules) : schema_(schema), rules_(rules) {}
  StackRules(const StackRules&) = delete;
  StackRules& operator=(const StackRules&) = delete;

  Facts facts_of(const Config& config) {
    if (!facts_) facts_.emplace(schema_, rules_.set->names);
    return facts_->of(config);
  }
  const RuleBook& book() {
    if (!book_) book_.emplace(schema_, rules_);
    return *book_;
  }
  ConflictMemo& memo() { return memo_; }

 private:
  const SchemaView& schema_;
  const ActiveRules& rules_;
  std::optional<StackFacts> facts_;
  std::optional<RuleBook> book_;
  ConflictMemo memo_;
};

}  // namespace capstan
