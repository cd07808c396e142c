// A resolved rule set: names interned, types checked, enum values known, version ranges parsed. Items are
// sorted in the order in which the framework meets them (phase, step, code); a rule sees all rewrites before
// it and none after it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/diagnostic.h"
#include "compiler/facts/facts.h"
#include "compiler/schema/schema.h"
#include "grammar/rule/rule_syntax.h"

namespace capstan {

/// Functions of the language; kNone for expressions that are no call.
enum class RuleFunction : std::uint8_t {
  kNone,
  kTokens,
  kMembers,
  kStrings,
  kSplit,
  kSize,
  kLength,
  kSum,
  kProduct,
  kContains,
  kStartsWith,
  kEndsWith,
  kBefore,
  kAfter,
  kCount,
  kCharacters,
  kLower,
  kMin,
  kMax,
  kAbs,
  kDivides,
  kInteger,
  kAllocator,
  kAllocatorProblem,
  kField,
  kLayout
};

/// The word after `is` and `is not`; kNothing for other expressions.
enum class KindWord : std::uint8_t { kNothing, kSet, kNone, kBool, kInt, kFloat, kString, kList, kTable };

/// A resolved expression. Names are FactIds; set literals of constants are folded into `literal` (a list
/// Value without equal elements, no children). `and` and `or` have two or more children, other operators as
/// many as they need.
struct TypedExpr {
  ExprOp op = ExprOp::literal;
  RuleFunction function = RuleFunction::kNone;  ///< for call
  KindWord kind = KindWord::kNothing;           ///< for is and is_not
  FactId fact = 0;   ///< for name, and for is/is_not on a bare name (which then has no child)
  Value literal;     ///< for literal and constant set
  Version version;   ///< for version
  std::string name;  ///< for call its function, for is and is_not the kind
  std::vector<TypedExpr> children;
  Span span;
};

struct ResolvedBound {
  Comparison comparison;
  Version version;
};
struct ResolvedRange {
  std::string component;
  std::vector<ResolvedBound> bounds;
};

enum class Enforcer { core, bridge, megatron_lm, transformer_engine, torch, nccl, capstan };
const char* enforcer_name(Enforcer enforcer);

struct ResolvedAction {
  FixAction::Kind kind;
  FactId key;
  TypedExpr value;  ///< meaningless for unset
};

struct ResolvedFix {
  std::string title;
  Applicability applicability;
  CostClass cost;
  std::vector<ResolvedAction> actions;
};

/// One item of the rule set: a check, a silent rewrite or a derived fact.
struct RuleItem {
  enum class Kind { check, rewrite, define };
  Kind kind = Kind::check;

  std::string code, name;  ///< empty code for defines
  FindingKind finding = FindingKind::rejects;
  Severity severity = Severity::error;
  bool silent = false;  ///< rewrites that only normalise
  Enforcer enforcer = Enforcer::core;
  std::vector<std::string> frontends;  ///< sorted; empty: all
  std::vector<ResolvedRange> applies;
  int phase = 0;  ///< index into RuleSet::phases
  std::int64_t step = 0;

  bool has_when = false;
  TypedExpr when;
  TypedExpr require;                        ///< check
  std::vector<ResolvedAction> assignments;  ///< rewrite
  FactId defined = 0;                       ///< define
  TypedExpr value;                          ///< define

  std::vector<FactId> blame;
  std::vector<FactId> reads;  ///< every fact of `when`, `require`, `value`, assignments; sorted
  std::vector<FactId> shown;  ///< `reads`, `blame` and the holes of `message`; sorted
  std::string message, why;   ///< message has {name} holes
  std::vector<std::string> raises;
  std::vector<ResolvedFix> fixes;
  std::vector<SourceSyntax> sources;
  std::vector<EvidenceSyntax> evidence;
  std::string file;  ///< rule file, for explain and for pointing
  Span span;
};

struct RuleSet {
  FactNames names;
  std::vector<std::string> phases;  ///< in order
  std::vector<RuleItem> items;      ///< sorted by (phase, step, code, name)
};

/// The items that apply to one stack (front-end and versions); indices into RuleSet::items, in order.
struct ActiveRules {
  const RuleSet* set = nullptr;
  std::vector<std::uint32_t> items;
};

}  // namespace capstan
