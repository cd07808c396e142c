// Shell text that was put together from pieces of a source, as `sh -c "..."` gets it.
#pragma once

#include <string>
#include <vector>

#include "grammar/environment/shell_script.h"

namespace capstan {

struct ShellText {
  struct Piece {
    std::size_t begin = 0;  ///< in `text`
    Span span;              ///< of the same length as the piece when the text stands there as it is
    int mark = -1;          ///< what the caller knows of the piece; parts made of it carry it
  };
  std::string text;
  std::vector<Piece> pieces;  ///< in order
  void add(const std::string& part, Span span, int mark = -1);
};

/// As parse_shell of a source, with the places of the pieces. Comments are not collected.
ShellScript parse_shell(const ShellText& text, std::vector<SyntaxProblem>& problems);

}  // namespace capstan
