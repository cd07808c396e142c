// Evaluates typed expressions over facts without copying them: results refer to facts, literals, or
// temporaries that the evaluator keeps until clear(). Three-valued: what depends on an unknown fact is
// unknown unless logic decides it.
#pragma once

#include <cstdint>
#include <deque>
#include <string_view>

#include "compiler/facts/facts.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/rule.h"

namespace capstan {

/// A value by reference. Strings, lists and tables belong to a fact, a literal or the evaluator.
struct ValueView {
  enum class Tag : std::uint8_t {
    none,
    boolean,
    integer,
    floating,
    string,
    list,
    set,
    table,
    version,
    unknown
  };
  Tag tag = Tag::none;
  union {
    bool boolean;
    std::int64_t integer;
    double floating;
    const Value* value;  ///< string, list, set (a list Value), table
    const Version* version;
  };

  ValueView() : integer(0) {}
  static ValueView unknown() { return of_tag(Tag::unknown); }
  static ValueView of(bool flag);
  static ValueView of(const Value& value, bool as_set = false);
  static ValueView of(const Version& version);
  bool is_unknown() const { return tag == Tag::unknown; }
  bool is_number() const { return tag == Tag::integer || tag == Tag::floating; }
  bool has_elements() const { return tag == Tag::list || tag == Tag::set; }
  /// A copy; a set becomes a list, a version none.
  Value to_value() const;

 private:
  static ValueView of_tag(Tag tag) {
    ValueView view;
    view.tag = tag;
    return view;
  }
};

class ExpressionEvaluator {
 public:
  explicit ExpressionEvaluator(const Facts& facts) : facts_(facts) {}

  ValueView evaluate(const TypedExpr& expr);
  Truth condition(const TypedExpr& expr);
  /// Forgets temporaries: views of earlier results are dead after it.
  void clear() { kept_.clear(); }

 private:
  ValueView keep(Value value, bool as_set = false);
  ValueView read(FactId fact) const;
  ValueView call(const TypedExpr& expr);
  ValueView set_operation(const TypedExpr& expr);
  Truth is_kind(const TypedExpr& expr);
  Truth compare(const TypedExpr& expr);
  Truth compare_sets(const TypedExpr& expr);
  Truth contains(const TypedExpr& expr);

  const Facts& facts_;
  std::deque<Value> kept_;  // deque: references stay valid
};

}  // namespace capstan
