// Values with their cases and sets with their members: joining, comparing and counting them.
#include <algorithm>
#include <utility>

#include "compiler/constraints/encode.h"
#include "compiler/ruleset/rule_values.h"

namespace capstan {
namespace {

// More cases of one value than this, and it is unknown (and the question undecided).
constexpr std::size_t kMaxCases = 512;
constexpr std::size_t kMaxCounted = 64;

Term member_of(const std::vector<std::pair<Value, Term>>& members, const Value& element) {
  for (const auto& [value, term] : members) {
    if (same_value(value, element)) return term;
  }
  return kFalse;
}

}  // namespace

void Encoding::add_case(Symbolic& value, Term guard, const Scalar& scalar) {
  if (guard == kFalse) return;
  for (Symbolic::Case& known : value.cases) {
    if (known.scalar == scalar) {
      known.guard = smt_.either(known.guard, guard);
      return;
    }
  }
  if (value.cases.size() >= kMaxCases && !scalar.is_unknown()) {
    too_wide_ = true;
    add_case(value, guard, Scalar::unknown());
    return;
  }
  value.cases.push_back({guard, scalar});
}

Symbolic Encoding::merge(Term condition, const Symbolic& then, const Symbolic& otherwise) {
  if (condition == kTrue) return then;
  if (condition == kFalse) return otherwise;
  Symbolic value;
  const Term not_condition = smt_.negate(condition);
  for (const Symbolic::Case& entry : then.cases)
    add_case(value, smt_.both(condition, entry.guard), entry.scalar);
  for (const Symbolic::Case& entry : otherwise.cases)
    add_case(value, smt_.both(not_condition, entry.guard), entry.scalar);
  const Term then_set = smt_.both(condition, then.set_guard);
  const Term other_set = smt_.both(not_condition, otherwise.set_guard);
  value.set_guard = smt_.either(then_set, other_set);
  if (then_set == kFalse) {
    value.members = otherwise.members;
  } else if (other_set == kFalse) {
    value.members = then.members;
  } else {
    for (const auto& [element, term] : then.members) {
      value.members.emplace_back(element,
                                 smt_.choose(condition, term, member_of(otherwise.members, element)));
    }
    for (const auto& [element, term] : otherwise.members) {
      if (member_of(then.members, element) == kFalse &&
          std::none_of(then.members.begin(), then.members.end(),
                       [&e = element](const auto& known) { return same_value(known.first, e); })) {
        value.members.emplace_back(element, smt_.both(not_condition, term));
      }
    }
  }
  return value;
}

Term Encoding::unknown_guard(const Symbolic& value) {
  std::vector<Term> guards;
  for (const Symbolic::Case& entry : value.cases) {
    if (entry.scalar.is_unknown()) guards.push_back(entry.guard);
  }
  return smt_.any(std::move(guards));
}

Condition Encoding::decided(Term yes, Term unknown) {
  const Term known = smt_.negate(unknown);
  return {smt_.both(yes, known), smt_.both(smt_.negate(yes), known)};
}

Symbolic Encoding::from_condition(const Condition& condition) {
  Symbolic value;
  add_case(value, condition.yes, Scalar::of(Value(true)));
  add_case(value, condition.no, Scalar::of(Value(false)));
  add_case(value, smt_.negate(smt_.either(condition.yes, condition.no)), Scalar::unknown());
  return value;
}

Condition Encoding::to_condition(const Symbolic& value) {
  std::vector<Term> yes;
  for (const Symbolic::Case& entry : value.cases) {
    if (entry.scalar.tag == Scalar::Tag::value && entry.scalar.value.kind() == Value::Kind::boolean &&
        entry.scalar.value.boolean()) {
      yes.push_back(entry.guard);
    }
  }
  return decided(smt_.any(std::move(yes)), unknown_guard(value));
}

Encoding::SetView Encoding::to_set(const Symbolic& value) {
  SetView view;
  view.unknown = unknown_guard(value);
  std::vector<std::pair<Value, std::vector<Term>>> members;
  const auto add = [&](const Value& element, Term guard) {
    for (auto& [known, guards] : members) {
      if (same_value(known, element)) {
        guards.push_back(guard);
        return;
      }
    }
    members.push_back({element, {guard}});
  };
  for (const Symbolic::Case& entry : value.cases) {
    if (entry.scalar.tag != Scalar::Tag::value) continue;
    for (const Value& element : distinct_elements(entry.scalar.value)) add(element, entry.guard);
  }
  for (const auto& [element, term] : value.members) add(element, smt_.both(value.set_guard, term));
  for (auto& [element, guards] : members) {
    const Term guard = smt_.any(std::move(guards));
    if (guard != kFalse) view.members.emplace_back(element, guard);
  }
  return view;
}

Symbolic Encoding::from_set(SetView set) {
  Symbolic value;
  add_case(value, set.unknown, Scalar::unknown());
  value.set_guard = smt_.negate(set.unknown);
  value.members = std::move(set.members);
  return value;
}

Condition Encoding::equal(const Symbolic& a, const Symbolic& b) {
  std::vector<Term> yes;
  for (const Symbolic::Case& x : a.cases) {
    for (const Symbolic::Case& y : b.cases) {
      if (rule_equal(x.scalar, y.scalar)) yes.push_back(smt_.both(x.guard, y.guard));
    }
  }
  const auto same_members = [this](const Symbolic& set, const Value& list) {
    const std::vector<Value> elements = distinct_elements(list);
    std::vector<Term> parts{set.set_guard};
    for (const auto& [element, term] : set.members)
      parts.push_back(has_element(elements, element) ? term : smt_.negate(term));
    for (const Value& element : elements) parts.push_back(member_of(set.members, element));
    return smt_.all(std::move(parts));
  };
  const auto set_with_cases = [&](const Symbolic& set, const Symbolic& other) {
    if (set.set_guard == kFalse) return;
    for (const Symbolic::Case& entry : other.cases) {
      if (entry.scalar.tag != Scalar::Tag::value || entry.scalar.value.kind() != Value::Kind::list) continue;
      yes.push_back(smt_.both(entry.guard, same_members(set, entry.scalar.value)));
    }
  };
  set_with_cases(a, b);
  set_with_cases(b, a);
  if (a.set_guard != kFalse && b.set_guard != kFalse) {
    std::vector<Term> parts{a.set_guard, b.set_guard};
    for (const auto& [element, term] : a.members)
      parts.push_back(smt_.same(term, member_of(b.members, element)));
    for (const auto& [element, term] : b.members) {
      if (member_of(a.members, element) == kFalse) parts.push_back(smt_.negate(term));
    }
    yes.push_back(smt_.all(std::move(parts)));
  }
  return decided(smt_.any(std::move(yes)), smt_.either(unknown_guard(a), unknown_guard(b)));
}

Term Encoding::equals(const Symbolic& value, const Scalar& scalar) {
  Symbolic other;
  other.cases.push_back({kTrue, scalar});
  return equal(value, other).yes;
}

Condition Encoding::contains(const Symbolic& element, const Symbolic& set) {
  const SetView view = to_set(set);
  std::vector<Term> yes;
  for (const Symbolic::Case& entry : element.cases) {
    if (entry.scalar.tag != Scalar::Tag::value) continue;
    yes.push_back(smt_.both(entry.guard, member_of(view.members, entry.scalar.value)));
  }
  return decided(smt_.any(std::move(yes)), smt_.either(unknown_guard(element), view.unknown));
}

Symbolic Encoding::set_operation(ExprOp op, const Symbolic& a, const Symbolic& b) {
  const SetView left = to_set(a);
  const SetView right = to_set(b);
  SetView result;
  result.unknown = smt_.either(left.unknown, right.unknown);
  const auto add = [&](const Value& element, Term term) {
    if (term != kFalse) result.members.emplace_back(element, term);
  };
  for (const auto& [element, term] : left.members) {
    const Term other = member_of(right.members, element);
    switch (op) {
      case ExprOp::union_:
        add(element, smt_.either(term, other));
        break;
      case ExprOp::minus:
        add(element, smt_.both(term, smt_.negate(other)));
        break;
      default:
        add(element, smt_.both(term, other));
        break;
    }
  }
  if (op == ExprOp::union_) {
    for (const auto& [element, term] : right.members) {
      if (member_of(left.members, element) == kFalse) add(element, term);
    }
  }
  return from_set(std::move(result));
}

Condition Encoding::set_comparison(ExprOp op, const Symbolic& a, const Symbolic& b) {
  const SetView left = to_set(a);
  const SetView right = to_set(b);
  const Term unknown = smt_.either(left.unknown, right.unknown);
  std::vector<Term> parts;
  for (const auto& [element, term] : left.members) {
    const Term other = member_of(right.members, element);
    parts.push_back(op == ExprOp::subset ? smt_.implies(term, other) : smt_.both(term, other));
  }
  return decided(op == ExprOp::subset ? smt_.all(std::move(parts)) : smt_.any(std::move(parts)), unknown);
}

Symbolic Encoding::cardinality(const SetView& set) {
  Symbolic value;
  if (set.members.size() > kMaxCounted) {
    too_wide_ = true;
    value.cases.push_back({kTrue, Scalar::unknown()});
    return value;
  }
  // exactly[k]: k of the members seen so far are in the set.
  std::vector<Term> exactly{kTrue};
  for (const auto& [element, term] : set.members) {
    std::vector<Term> next(exactly.size() + 1, kFalse);
    for (std::size_t k = 0; k < exactly.size(); ++k) {
      next[k] = smt_.either(next[k], smt_.both(exactly[k], smt_.negate(term)));
      next[k + 1] = smt_.both(exactly[k], term);
    }
    exactly = std::move(next);
  }
  const Term known = smt_.negate(set.unknown);
  for (std::size_t k = 0; k < exactly.size(); ++k) {
    add_case(value, smt_.both(known, exactly[k]), Scalar::of(Value(static_cast<std::int64_t>(k))));
  }
  add_case(value, set.unknown, Scalar::unknown());
  return value;
}

}  // namespace capstan
