// What the lexical, expression and item grammars of rule files share: the state of one parse (how far it
// came, what would have fitted there, how deep it nests) and the tokens. Plain C++; the grammars behind it
// are in the .cpp files. Every scan_* function skips blanks and comments, and either moves `at` past its
// token or leaves `at` alone, notes what it wanted, and returns false.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/rule/rule_syntax.h"
#include "grammar/source/span.h"
#include "grammar/source/syntax_problem.h"

namespace capstan {

struct RuleScan {
  RuleScan(SourceId source_id, std::string_view text)
      : source(source_id), begin(text.data()), end(text.data() + text.size()), farthest(begin) {}

  SourceId source;
  const char* begin;
  const char* end;
  const char* farthest;                    ///< start of the token at which the parse could not go on
  std::vector<std::string_view> expected;  ///< what would have fitted there; texts are static
  std::optional<SyntaxProblem> fatal;      ///< a problem with words of its own; no token matches after it
  int depth = 0;                           ///< open parentheses, sets, calls, conditionals

  void expect(const char* at, std::string_view description);
  void fail(const char* first, const char* last, std::string message);
  Span span(const char* first, const char* last) const {
    return {source, static_cast<std::uint32_t>(first - begin), static_cast<std::uint32_t>(last - begin)};
  }
  /// The problem that stopped the parse: the fatal one, or what stands at the farthest place against what was
  /// expected.
  SyntaxProblem problem() const;
};

/// First byte at or after `at` that is no blank and no comment.
const char* skip_blanks(const char* at, const char* end);

/// A word that is no part of a longer name.
bool scan_keyword(const char*& at, RuleScan& scan, std::string_view word);
/// One of the words; `out` says which.
bool scan_choice(const char*& at, RuleScan& scan, const std::vector<std::string_view>& words,
                 TextWithSpan& out);
bool scan_symbol(const char*& at, RuleScan& scan, std::string_view symbol, std::string_view description);
/// `model.x`, `graph.modules`, `target.transformer-engine`; no reserved word of expressions.
bool scan_path(const char*& at, RuleScan& scan, TextWithSpan& out, std::string_view description);
/// Strings that stand next to each other join.
bool scan_string(const char*& at, RuleScan& scan, TextWithSpan& out);
/// One string; what stands next to it is left.
bool scan_single_string(const char*& at, RuleScan& scan, TextWithSpan& out);
/// Integer or float literal, without sign.
bool scan_number(const char*& at, RuleScan& scan, Expr& out);
bool scan_integer(const char*& at, RuleScan& scan, std::int64_t& out);
/// `v2.10` in expressions; the text keeps no `v`.
bool scan_version_literal(const char*& at, RuleScan& scan, Expr& out);
/// `0.16`, `0.16.0rc0` after a comparison of `applies`.
bool scan_version(const char*& at, RuleScan& scan, TextWithSpan& out);
bool scan_code(const char*& at, RuleScan& scan, TextWithSpan& out);
bool scan_kebab_name(const char*& at, RuleScan& scan, TextWithSpan& out);
bool scan_date(const char*& at, RuleScan& scan, TextWithSpan& out);
bool scan_end(const char*& at, RuleScan& scan);

/// The expression grammar. False leaves the reason in `scan`.
bool scan_expression(const char*& at, RuleScan& scan, Expr& out);

enum class ItemKind { rule, rewrite, define };

/// The fields of one item as they were written, before it is known whether all are there.
struct ItemFields {
  ItemKind kind = ItemKind::rule;
  TextWithSpan code, name;  ///< a define has no code; its name is the fact
  struct Field {
    std::string_view name;
    Span span;
  };
  std::vector<Field> written;  ///< every field keyword, in order, repeated ones too

  TextWithSpan finding, severity, silent, enforcer, phase, message, why, doc;
  std::int64_t step = 0;
  std::vector<TextWithSpan> frontends, blame, raises;
  std::vector<VersionRange> applies;
  Expr when, require, value;
  std::vector<FixAction> assignments;
  std::vector<FixSyntax> fixes;
  std::vector<SourceSyntax> sources;
  std::vector<EvidenceSyntax> evidence;
  Span span;

  bool has(std::string_view field) const;
};

/// The item grammar over a whole text. False leaves the reason in `scan`.
bool scan_items(RuleScan& scan, std::vector<ItemFields>& out);

}  // namespace capstan
