// Rule text -> RuleFileSyntax. Stops at the first syntax error of a file and says what was expected there; missing fields of
// a complete item are reported all at once. Nesting of expressions is bounded (kMaxExpressionDepth).
#pragma once

#include <optional>
#include <vector>

#include "grammar/rule/rule_syntax.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

inline constexpr int kMaxExpressionDepth = 100;

std::optional<RuleFileSyntax> parse_rule_file(SourceId source, const SourceMap& sources,
                                              std::vector<SyntaxProblem>& problems);

/// One expression (for `--where`, tests and the fuzz target).
std::optional<Expr> parse_rule_expression(SourceId source, const SourceMap& sources, SyntaxProblem& problem);

}  // namespace capstan
