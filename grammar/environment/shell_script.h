// The part of shell syntax that launch scripts use: simple commands with words, quotes, line continuations,
// assignments and arrays. Nothing is run and nothing is expanded here; what is no literal (`$(...)`,
// arithmetic) is kept as an opaque part. Control structures are passed through; commands inside them are
// marked as conditional. `((...))` is given as the `let` that it stands for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/source/comment.h"
#include "grammar/source/source_file.h"
#include "grammar/source/span.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

struct ShellPart {
  enum class Kind {
    literal,    ///< text as it stands, quotes and escapes removed
    variable,   ///< `$X`, `${X}`
    array,      ///< `${X[@]}`, `${X[*]}`, `$@`
    defaulted,  ///< `${X:-text}`, `${X:=text}`, `${X-text}`; `fallback` holds the text
    opaque      ///< command substitution, arithmetic, braces, other expansions; text as written
  };
  Kind kind = Kind::literal;
  std::string text;  ///< literal text, variable name, or the opaque source text
  std::string fallback;
  bool quoted = false;  ///< stands in double or single quotes: no word splitting
  Span span;
  int mark = -1;                 ///< of the piece it comes from, in a text that was put together
  bool fallback_quoted = false;  ///< the fallback stands in quotes of its own
};

/// One word; its parts stand directly behind each other.
struct ShellWord {
  std::vector<ShellPart> parts;
  Span span;
  bool is_literal() const;
  /// Joined text of the literal parts; opaque and variable parts as written.
  std::string text() const;
};

struct ShellAssignment {
  std::string name;
  Span name_span;
  bool append = false;  ///< `+=`
  bool is_array = false;
  bool open = false;  ///< what the name holds from here on is not known: a loop's variable, `A[1]=8`
  ShellWord value;    ///< for scalars; without parts for `X=`
  std::vector<ShellWord> items;  ///< for arrays
};

/// Text behind `<<WORD`, up to the line with the word.
struct ShellHereDocument {
  Span body;
  bool expands = true;  ///< false for `<<'WORD'`
};

struct ShellCommand {
  std::vector<ShellAssignment> assignments;  ///< before the words, or of export, declare, local, readonly
  std::vector<ShellWord> words;  ///< without assignments and redirections; empty for bare assignments
  bool exports = false;          ///< `export X=1`
  bool conditional = false;      ///< inside if, loop, case or function, or behind `&&`, `||`
  bool isolated = false;         ///< of a pipeline or in the background: it changes no variable of the script
  std::uint32_t subshells = 0;   ///< parentheses around it
  std::uint32_t kept_subshells = 0;  ///< those of them that were open ever since the command before
  std::vector<ShellHereDocument> documents;
  Span span;
};

struct ShellScript {
  std::vector<ShellCommand> commands;  ///< in order of the text
  std::vector<Comment> comments;
};

/// Never fails as a whole; unterminated quotes, parentheses and here-documents are reported with their
/// opening place.
ShellScript parse_shell(SourceId source, const SourceMap& sources, std::vector<SyntaxProblem>& problems);

/// The same of a text that stands in no map of sources: places are offsets in `text`.
ShellScript parse_shell(SourceId source, std::string_view text, std::vector<SyntaxProblem>& problems);

}  // namespace capstan
