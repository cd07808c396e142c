// One item's expressions: names to facts, kinds checked, constants folded. Reports every problem with its
// place.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/ruleset/kinds.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

/// A fact that rules compute: by which items, and what it can be.
struct DefinedFact {
  struct Definition {
    std::vector<ResolvedRange> applies;
    std::vector<std::string> frontends;
    Kinds kinds;
  };
  std::vector<Definition> definitions;  ///< those already resolved, in order
  std::vector<Span> pending;            ///< places of those still to come
};

using DefinedFacts = std::map<std::string, DefinedFact, std::less<>>;

/// For which releases and front-ends an item speaks.
struct ItemScope {
  const std::vector<ResolvedRange>& applies;
  const std::vector<std::string>& frontends;
  std::vector<const Stack*> stacks;  ///< the known ones on which the item can be active
};

/// What each known stack has of a key, looked up once: most keys are read by many items.
class KeySpecs {
 public:
  explicit KeySpecs(const Schema& schema) : schema_(schema) {}
  /// By stack, in the order of Schema::stacks(); null where the stack does not have the key.
  const std::vector<const KeySpec*>& of(const KeyInfo& key);

 private:
  const Schema& schema_;
  std::unordered_map<const KeyInfo*, std::vector<const KeySpec*>> specs_;
};

class ExpressionResolver {
 public:
  ExpressionResolver(const Schema& schema, KeySpecs& specs, const DefinedFacts& defined, FactNames& names,
                     Sink& sink, ItemScope scope)
      : schema_(schema),
        specs_(specs),
        defined_(defined),
        names_(names),
        sink_(sink),
        scope_(std::move(scope)) {}

  /// A value of any kind; what could not be resolved counts as any kind.
  TypedExpr resolve(const Expr& expr, Kinds& kinds);
  /// A condition: boolean (none counts as false).
  TypedExpr resolve_condition(const Expr& expr);
  /// The id of a name, and what it can be. Reports a name that does not exist for these releases.
  std::optional<FactId> resolve_name(const std::string& name, Span span, Kinds& kinds);
  /// The value fits what the key can hold; reports it otherwise.
  void check_fits(const std::string& key, const Kinds& key_kinds, const Expr& expr, const Kinds& kinds);
  /// An edit of a fix: on a key of the config, with a value that it can hold.
  void check_action(const FixAction& action, const Kinds& key_kinds, const Kinds& kinds);
  /// Every string of `expr` is one that the subject can have.
  void check_words(const Expr& subject, const Kinds& allowed, const Expr& expr, const Kinds& kinds);
  void check_words(const std::string& name, const Kinds& allowed, const Expr& expr, const Kinds& kinds);

  bool failed() const { return failed_; }
  /// Every fact that was read, in order of appearance.
  const std::vector<FactId>& reads() const { return reads_; }

 private:
  void problem(const char* code, std::string message, Span span);
  std::optional<Kinds> key_kinds(const std::string& name, Span span);
  std::optional<Kinds> target_kinds(std::string_view name);
  std::optional<Kinds> defined_kinds(const std::string& name, const DefinedFact& fact, Span span);
  void report_unknown_name(const std::string& name, Span span);

  TypedExpr resolve_set(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_comparison(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_membership(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_set_operator(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_arithmetic(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_is(const Expr& expr, Kinds& kinds);
  TypedExpr resolve_call(const Expr& expr, Kinds& kinds);
  void require_kinds(const Expr& expr, const Kinds& kinds, int mask, const char* wanted);

  const Schema& schema_;
  KeySpecs& specs_;
  const DefinedFacts& defined_;
  FactNames& names_;
  Sink& sink_;
  ItemScope scope_;
  std::vector<FactId> reads_;
  bool failed_ = false;
};

/// Whether items of these front-ends can meet (empty: all).
bool share_frontend(const std::vector<std::string>& a, const std::vector<std::string>& b);

}  // namespace capstan
