// What a parser found wrong, and where. Grammar folders know no diagnostics; the compiler turns problems into
// them.
#pragma once

#include <string>
#include <vector>

#include "grammar/source/span.h"

namespace capstan {

struct SyntaxProblem {
  std::string message;  ///< the situation, lower case, no period
  Span where;
  std::vector<std::string> expected;  ///< token descriptions, for grammars that know them
};

}  // namespace capstan
