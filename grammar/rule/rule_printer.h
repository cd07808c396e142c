// RuleSyntax -> canonical rule text; parsing the result gives the same syntax (apart from spans).
#pragma once

#include <string>

#include "grammar/rule/rule_syntax.h"

namespace capstan {

std::string print(const RuleFileSyntax& file);
std::string print(const Expr& expr);

}  // namespace capstan
