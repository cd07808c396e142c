// Environment files: lines `NAME=VALUE`, `export NAME=VALUE`, comments, single and double quotes. Values are
// taken as they stand; one that needs a shell to know it (`$HOME/x`, `$(date)`) is reported, not guessed.
#pragma once

#include <string>
#include <vector>

#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

struct EnvironmentVariable {
  std::string name;
  Span name_span;
  std::string value;
  Span value_span;  ///< with quotes, if any
};

/// In order; a name may occur several times (the last one holds). Each bad line is one problem, the others
/// are read.
std::vector<EnvironmentVariable> parse_env_file(SourceId source, const SourceMap& sources,
                                                std::vector<SyntaxProblem>& problems);

}  // namespace capstan
