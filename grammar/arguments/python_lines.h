// Python text -> its statements with their indentation, and its comments. Strings, brackets and backslashes
// join lines; a `;` parts them. Nothing of a statement is understood here.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

/// A statement: one line, or several joined by brackets, strings or backslashes.
struct PythonLine {
  std::size_t begin = 0, end = 0;  ///< without indentation, trailing blanks and trailing comment
  std::size_t indent = 0;
  bool goes_on = false;  ///< behind a `;`: belongs to what the statement before it belongs to
};

struct PythonLines {
  std::vector<PythonLine> statements;
  std::vector<Comment> comments;
};

/// Nothing (with a problem) when a string or a bracket does not close, and for binary text.
std::optional<PythonLines> split_python_lines(SourceId source, const SourceMap& sources,
                                              SyntaxProblem& problem);

}  // namespace capstan
