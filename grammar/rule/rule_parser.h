// Rule text -> RuleFileSyntax. Stops at the first syntax error of a file and says what was expected there;
// missing and repeated fields of a complete item are reported all at once, and such an item is left out.
// Nesting is bounded (kMaxExpressionDepth), for parentheses and prefix operators and for the height of the
// tree, so that no text exhausts the stack.
#pragma once

#include <optional>
#include <vector>

#include "grammar/rule/rule_syntax.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

inline constexpr int kMaxExpressionDepth = 100;

struct RuleProblem : SyntaxProblem {
  bool missing_field = false;  ///< the item is well-formed, but lacks fields
};

/// `unexpected `x`, expected a string or `}``: the problem with what was expected there, for showing.
std::string describe(const SyntaxProblem& problem);

/// Nothing after a syntax error. Items that lack or repeat fields are left out (and reported).
std::optional<RuleFileSyntax> parse_rule_file(SourceId source, const SourceMap& sources,
                                              std::vector<RuleProblem>& problems);

/// One expression (for `--where`, tests and the fuzz target).
std::optional<Expr> parse_rule_expression(SourceId source, const SourceMap& sources, SyntaxProblem& problem);

}  // namespace capstan
