// The operators and functions of the rule language on values with cases.
#include <utility>

#include "compiler/constraints/encode.h"

namespace capstan {
namespace {

// Combinations of cases that one operator may make; beyond it the result is unknown (and the question
// undecided).
constexpr std::size_t kMaxCombinations = 16384;

}  // namespace

template <typename Apply>
Symbolic Encoding::combine(const Symbolic& a, const Symbolic& b, const Apply& apply) {
  // A set as operand of what takes no sets: its content does not matter, so an empty one stands for it.
  const auto cases_of = [](const Symbolic& value,
                           std::vector<Symbolic::Case>& with_set) -> const std::vector<Symbolic::Case>& {
    if (value.set_guard == kFalse) return value.cases;
    with_set = value.cases;
    Scalar set = Scalar::of(Value(Value::List{}));
    set.as_set = true;
    with_set.push_back({value.set_guard, std::move(set)});
    return with_set;
  };
  std::vector<Symbolic::Case> left_with_set, right_with_set;
  const std::vector<Symbolic::Case>& left = cases_of(a, left_with_set);
  const std::vector<Symbolic::Case>& right = cases_of(b, right_with_set);
  Symbolic value;
  if (left.size() * right.size() > kMaxCombinations) {
    too_wide_ = true;
    value.cases.push_back({kTrue, Scalar::unknown()});
    return value;
  }
  for (const Symbolic::Case& x : left) {
    for (const Symbolic::Case& y : right) {
      const Term guard = smt_.both(x.guard, y.guard);
      if (guard == kFalse) continue;
      const bool unknown = x.scalar.is_unknown() || y.scalar.is_unknown();
      add_case(value, guard, unknown ? Scalar::unknown() : apply(x.scalar, y.scalar));
    }
  }
  return value;
}

Symbolic Encoding::call(const TypedExpr& expr, std::uint32_t position) {
  std::vector<Symbolic> arguments;
  for (const TypedExpr& child : expr.children) arguments.push_back(evaluate(child, position));
  Symbolic unknown;
  unknown.cases.push_back({kTrue, Scalar::unknown()});
  if (arguments.empty()) return unknown;
  const Symbolic& first = arguments[0];
  if (gives_set(expr.name)) {
    std::string separator = ",";
    if (arguments.size() > 1 && arguments[1].cases.size() == 1 &&
        arguments[1].cases[0].scalar.value.kind() == Value::Kind::string) {
      separator = arguments[1].cases[0].scalar.value.string();
    }
    Symbolic lists = first;
    for (Symbolic::Case& entry : lists.cases) {
      if (entry.scalar.tag == Scalar::Tag::value) {
        entry.scalar = Scalar::of(Value(apply_set_function(expr.name, entry.scalar.value, separator)));
      }
    }
    lists.members.clear();
    for (const auto& [element, term] : first.members) {
      for (const Value& part : apply_set_function(expr.name, Value(Value::List{element}), separator))
        lists.members.emplace_back(part, term);
    }
    return from_set(to_set(lists));
  }
  if (expr.name == "size") return cardinality(to_set(first));
  if (first.set_guard != kFalse && (expr.name == "length" || expr.name == "sum" || expr.name == "product")) {
    Symbolic only_set;
    only_set.set_guard = first.set_guard;
    only_set.members = first.members;
    Symbolic counted = cardinality(to_set(only_set));
    if (expr.name != "length") {
      too_wide_ = true;
      counted = unknown;
    }
    Symbolic rest;
    for (const Symbolic::Case& entry : first.cases) {
      add_case(rest, entry.guard,
               entry.scalar.is_unknown() ? entry.scalar : apply_function(expr.name, {entry.scalar}));
    }
    return merge(first.set_guard, counted, rest);
  }
  Symbolic result = arguments.size() > 1 ? combine(first, arguments[1],
                                                   [&](const Scalar& a, const Scalar& b) {
                                                     return apply_function(expr.name, {a, b});
                                                   })
                                         : combine(first, first, [&](const Scalar& a, const Scalar&) {
                                             return apply_function(expr.name, {a});
                                           });
  for (std::size_t i = 2; i < arguments.size(); ++i) {
    result = combine(result, arguments[i], [&](const Scalar& a, const Scalar& b) {
      return apply_function(expr.name, {a, b});
    });
  }
  return result;
}

Condition Encoding::is_test(const TypedExpr& expr, std::uint32_t position) {
  const bool bare = expr.children.empty() || expr.children[0].op == ExprOp::name;
  const FactId fact = expr.children.empty() ? expr.fact : expr.children[0].fact;
  if (expr.name == "set" && bare) {
    const Term set = set_term(fact);
    return {set, smt_.negate(set)};
  }
  Symbolic computed;
  if (!bare) computed = evaluate(expr.children[0], position);
  const Symbolic& value = bare ? fact_before(fact, position) : computed;
  std::vector<Term> yes;
  for (const Symbolic::Case& entry : value.cases) {
    if (is_kind(entry.scalar, expr.name)) yes.push_back(entry.guard);
  }
  if (expr.name == "list") yes.push_back(value.set_guard);
  return decided(smt_.any(std::move(yes)), unknown_guard(value));
}

Condition Encoding::condition(const TypedExpr& expr, std::uint32_t position) {
  const auto child = [&](std::size_t i) { return condition(expr.children.at(i), position); };
  // Facts are read in place: references to them stay good while others are worked out.
  Symbolic computed[2];
  const auto value = [&](std::size_t i) -> const Symbolic& {
    const TypedExpr& operand = expr.children.at(i);
    if (operand.op == ExprOp::name) return fact_before(operand.fact, position);
    return computed[i] = evaluate(operand, position);
  };
  const auto flipped = [](const Condition& a) { return Condition{a.no, a.yes}; };
  switch (expr.op) {
    case ExprOp::not_:
      return flipped(child(0));
    case ExprOp::and_:
    case ExprOp::or_: {
      std::vector<Term> yes, no;
      for (std::size_t i = 0; i < expr.children.size(); ++i) {
        const Condition part = child(i);
        // What decides the whole for certain needs no company.
        if (part.no == kTrue && expr.op == ExprOp::and_) return {kFalse, kTrue};
        if (part.yes == kTrue && expr.op == ExprOp::or_) return {kTrue, kFalse};
        yes.push_back(part.yes);
        no.push_back(part.no);
      }
      if (expr.op == ExprOp::and_) return {smt_.all(std::move(yes)), smt_.any(std::move(no))};
      return {smt_.any(std::move(yes)), smt_.all(std::move(no))};
    }
    case ExprOp::implies: {
      const Condition a = child(0);
      if (a.no == kTrue) return {kTrue, kFalse};
      const Condition b = child(1);
      return {smt_.either(a.no, b.yes), smt_.both(a.yes, b.no)};
    }
    case ExprOp::iff: {
      const Condition a = child(0), b = child(1);
      return {smt_.either(smt_.both(a.yes, b.yes), smt_.both(a.no, b.no)),
              smt_.either(smt_.both(a.yes, b.no), smt_.both(a.no, b.yes))};
    }
    case ExprOp::equal:
      return equal(value(0), value(1));
    case ExprOp::not_equal:
      return flipped(equal(value(0), value(1)));
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal:
      return to_condition(combine(
          value(0), value(1), [&](const Scalar& a, const Scalar& b) { return apply_binary(expr.op, a, b); }));
    case ExprOp::in:
      return contains(value(0), value(1));
    case ExprOp::not_in:
      return flipped(contains(value(0), value(1)));
    case ExprOp::subset:
    case ExprOp::overlaps:
      return set_comparison(expr.op, value(0), value(1));
    case ExprOp::is:
      return is_test(expr, position);
    case ExprOp::is_not:
      return flipped(is_test(expr, position));
    default:
      return to_condition(evaluate(expr, position));
  }
}

Symbolic Encoding::evaluate(const TypedExpr& expr, std::uint32_t position) {
  Symbolic result;
  const auto value = [&](std::size_t i) { return evaluate(expr.children.at(i), position); };
  switch (expr.op) {
    case ExprOp::literal:
      result.cases.push_back({kTrue, Scalar::of(expr.literal)});
      return result;
    case ExprOp::version:
      result.cases.push_back({kTrue, Scalar::of_version(expr.version)});
      return result;
    case ExprOp::name:
      return fact_before(expr.fact, position);
    case ExprOp::set: {
      SetView set{{}, kFalse};
      if (expr.literal.kind() == Value::Kind::list && expr.children.empty()) {
        for (const Value& element : distinct_elements(expr.literal)) set.members.emplace_back(element, kTrue);
        return from_set(std::move(set));
      }
      std::vector<Term> unknown;
      Symbolic joined = from_set({{}, kFalse});
      for (const TypedExpr& child : expr.children) {
        const Symbolic element = evaluate(child, position);
        SetView one{{}, unknown_guard(element)};
        for (const Symbolic::Case& entry : element.cases) {
          if (entry.scalar.tag == Scalar::Tag::value)
            one.members.emplace_back(entry.scalar.value, entry.guard);
        }
        joined = set_operation(ExprOp::union_, joined, from_set(std::move(one)));
      }
      return joined;
    }
    case ExprOp::union_:
    case ExprOp::minus:
    case ExprOp::intersect:
      return set_operation(expr.op, value(0), value(1));
    case ExprOp::coalesce: {
      const Symbolic a = value(0);
      std::vector<Term> none;
      for (const Symbolic::Case& entry : a.cases) {
        if (entry.scalar.is_none()) none.push_back(entry.guard);
      }
      const Term is_none = smt_.any(std::move(none));
      return is_none == kFalse ? a : merge(is_none, value(1), a);
    }
    case ExprOp::add:
    case ExprOp::subtract:
    case ExprOp::multiply:
    case ExprOp::divide:
    case ExprOp::floor_divide:
    case ExprOp::modulo:
      return combine(value(0), value(1),
                     [&](const Scalar& a, const Scalar& b) { return apply_binary(expr.op, a, b); });
    case ExprOp::negate: {
      const Symbolic a = value(0);
      return combine(a, a, [](const Scalar& x, const Scalar&) { return apply_negate(x); });
    }
    case ExprOp::conditional: {
      const Condition test = condition(expr.children.at(0), position);
      if (test.yes == kTrue) return value(1);
      if (test.no == kTrue) return value(2);
      Symbolic unknown;
      unknown.cases.push_back({kTrue, Scalar::unknown()});
      return merge(test.yes, value(1), merge(test.no, value(2), unknown));
    }
    case ExprOp::call:
      return call(expr, position);
    default:
      return from_condition(condition(expr, position));
  }
}

}  // namespace capstan
