// Plain structs of a parsed rule file, before names and types are resolved. docs/rule-language.md has the
// grammar. Every part keeps its span, so that later stages can point into the rule file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "grammar/source/span.h"
#include "grammar/source/value.h"

namespace capstan {

/// Operators of the rule language's expressions; the comment gives the spelling.
enum class ExprOp {
  literal,        // true, 3, 0.5, "attn", none
  version,        // v2.10, v0.16.0rc0
  set,            // { a, b, c }   (elements are children)
  name,           // model.cuda_graph_impl, env.NCCL_ALGO, graph.modules
  not_,           // not a
  and_,           // a and b and c      (two or more children; no child is an `and` itself)
  or_,            // a or b or c        (likewise)
  implies,        // a implies b
  iff,            // a iff b
  equal,          // a = b
  not_equal,      // a != b
  less,           // a < b
  less_equal,     // a <= b
  greater,        // a > b
  greater_equal,  // a >= b
  in,             // a in b
  not_in,         // a not in b
  is,             // a is none | set | bool | int | float | string | list      (name holds the word)
  is_not,         // a is not ...
  union_,         // a union b
  minus,          // a minus b          (sets)
  intersect,      // a intersect b
  subset,         // a subset b
  overlaps,       // a overlaps b
  add,
  subtract,
  multiply,
  divide,
  floor_divide,
  modulo,       // + - * / // %
  negate,       // -a
  coalesce,     // a ?? b             (b when a is none)
  conditional,  // if a then b else c
  call          // name(a, b, ...)    (name holds the function)
};

struct Expr {
  ExprOp op = ExprOp::literal;
  Span span;
  Value literal;     ///< for literal
  std::string name;  ///< for name, call, is, is_not; for version its text ("2.10")
  std::vector<Expr> children;
};

enum class Comparison { less, less_equal, equal, greater_equal, greater, not_equal };

/// `megatron-core >= 0.16 < 0.18`: all bounds must hold. A component without bounds (`transformer-engine`)
/// must be present.
struct VersionRange {
  struct Bound {
    Comparison comparison;
    std::string version;
    Span span;
  };
  std::string component;
  std::vector<Bound> bounds;
  Span span;
};

struct TextWithSpan {
  std::string text;
  Span span;
};

/// One edit of a fix: `set K = E`, `unset K`, `add E to K`, `remove E from K`.
struct FixAction {
  enum class Kind { set, unset, add, remove };
  Kind kind = Kind::set;
  TextWithSpan key;
  std::optional<Expr> value;
  Span span;
};

struct FixSyntax {
  TextWithSpan applicability;  ///< safe | unsafe
  TextWithSpan cost;           ///< free | memory | speed | numerics
  TextWithSpan title;
  std::vector<FixAction> actions;
  Span span;
};

struct SourceSyntax {  ///< `source "NVIDIA/Megatron-LM" "megatron/core/..." "TransformerConfig.__post_init__"
                       ///< seen "0.16.0..0.19.0"`
  TextWithSpan repository, path, symbol, seen;
};

struct EvidenceSyntax {  ///< `evidence code 2026-08-22 "text"`; kind is code | measured | documented |
                         ///< inferred
  TextWithSpan kind, date, text;
};

/// `rule CODE name { ... }`
struct RuleSyntax {
  TextWithSpan code, name;
  TextWithSpan kind;                     ///< rejects | breaks | advice
  std::optional<TextWithSpan> severity;  ///< error | warning | hint; default by kind
  TextWithSpan enforcer;  ///< core | bridge | megatron-lm | transformer-engine | torch | nccl | capstan
  std::vector<TextWithSpan> frontends;  ///< empty: all that the enforcer implies
  std::vector<VersionRange> applies;
  TextWithSpan phase;
  std::int64_t step = 0;
  std::optional<Expr> when;
  Expr require;
  std::vector<TextWithSpan> blame;
  TextWithSpan message, why;
  std::vector<TextWithSpan> raises;  ///< glob patterns (`*`) of the framework's message; required for rejects
  std::vector<FixSyntax> fixes;
  std::vector<SourceSyntax> sources;
  std::vector<EvidenceSyntax> evidence;
  Span span;
};

/// `rewrite CODE name { ... set K = E ... }`: what the framework changes silently. Reported as a hint
/// (severity given).
struct RewriteSyntax {
  TextWithSpan code, name;
  std::optional<TextWithSpan>
      severity;  ///< default hint; `silent yes` suppresses the finding (normalisation only)
  bool silent = false;
  TextWithSpan enforcer;
  std::vector<TextWithSpan> frontends;
  std::vector<VersionRange> applies;
  TextWithSpan phase;
  std::int64_t step = 0;
  std::optional<Expr> when;
  std::vector<FixAction> assignments;        ///< only Kind::set
  std::optional<TextWithSpan> message, why;  ///< required unless silent
  std::vector<FixSyntax> fixes;
  std::vector<SourceSyntax> sources;
  std::vector<EvidenceSyntax> evidence;
  Span span;
};

/// `define name applies ... phase p n = expr`: a derived fact.
struct DefineSyntax {
  TextWithSpan name;
  std::vector<TextWithSpan> frontends;
  std::vector<VersionRange> applies;
  TextWithSpan phase;
  std::int64_t step = 0;
  Expr value;
  std::optional<TextWithSpan> doc;
  Span span;
};

struct RuleFileSyntax {
  std::vector<RuleSyntax> rules;
  std::vector<RewriteSyntax> rewrites;
  std::vector<DefineSyntax> defines;
};

}  // namespace capstan
