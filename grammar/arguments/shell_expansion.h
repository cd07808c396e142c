// Follows the variables of a shell script from command to command: assignments in, words out, each with the
// place where it is written. Nothing is run. What is set under a condition stays visible: words added to a
// list of arguments are marked as conditional, other values become unknown.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/environment/shell_script.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

/// A part of a word after expansion.
struct ExpandedPiece {
  std::string text;
  Span span;
  bool literal = true;    ///< false: needs a shell to be known; `text` is as written
  bool quoted = false;    ///< not split at blanks
  bool expanded = false;  ///< comes from a variable
  bool conditional = false;
  std::string default_of;  ///< the variable whose default it is
  bool several = false;    ///< not literal: may be any number of words
  bool exact() const { return span.end - span.begin == text.size(); }
};

struct ExpandedWord {
  std::string text;
  Span span;
  bool literal = true;
  bool conditional = false;
  std::string default_of;
  bool several = false;
};

class ShellVariables {
 public:
  explicit ShellVariables(std::vector<SyntaxProblem>& problems) : problems_(problems) {}

  void assign(const ShellAssignment& assignment, bool conditional);
  /// What the name holds from here on is not known.
  void forget(const std::string& name);
  /// Names that stand for something the script states; all of them are forgotten.
  std::vector<std::string> forget_all();
  /// A shell of its own begins. What it sets is not known behind it (`leave`, which gives these names).
  void enter() { set_inside_.emplace_back(); }
  std::set<std::string> leave();
  /// `: ${X:=value}` gives X its default.
  void take_defaults(const ShellWord& word);
  /// Appends the words that the word stands for, blanks of unquoted expansions split. One that is a stated
  /// default without text stays, as an empty word of that variable.
  void expand(const ShellWord& word, std::vector<ExpandedWord>& out);
  /// Keeps what is known of a piece, for the text of a script made of it; gives its mark (-1: nothing
  /// special).
  int mark(const ExpandedPiece& piece);
  /// The word's text, not split.
  std::vector<ExpandedPiece> pieces(const ShellWord& word);

 private:
  struct Binding {
    bool known = true;
    bool is_array = false;
    std::vector<ExpandedPiece> scalar;
    std::vector<ExpandedWord> items;
  };

  void note(const std::string& name) {
    if (!set_inside_.empty()) set_inside_.back().insert(name);
  }
  void append_known(const Binding& binding, const ShellPart& part, std::vector<ExpandedPiece>& out);
  bool within_bounds(ExpandedPiece& piece);

  std::vector<SyntaxProblem>& problems_;
  std::map<std::string, Binding, std::less<>> bindings_;
  std::vector<ExpandedPiece> marks_;
  std::vector<std::set<std::string>> set_inside_;  ///< by open shell
  std::size_t bytes_ = 0;
  bool reported_ = false;
};

/// Variables that an arithmetic text assigns to (`L = 8`, `L++`, `L += 2`).
std::vector<std::string> names_set_by_arithmetic(std::string_view text);

ExpandedWord join(const std::vector<ExpandedPiece>& pieces, Span whole);

}  // namespace capstan
