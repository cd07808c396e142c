#include "compiler/constraints/encode.h"

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

// Combinations of cases that one operator may make; beyond it the result is unknown (and the question
// undecided).
constexpr std::size_t kMaxCombinations = 16384;
constexpr std::size_t kMaxCases = 512;
constexpr std::size_t kMaxCounted = 64;

Scalar scalar_of(const Fact& fact) {
  if (fact.state == Fact::State::unknown) return Scalar::unknown();
  if (fact.is_version) return Scalar::of_version(fact.version);
  Scalar scalar = Scalar::of(fact.value);
  scalar.as_set = fact.is_set;
  return scalar;
}

Scalar scalar_of(const Choice& choice) {
  return choice.unknown ? Scalar::unknown() : Scalar::of(choice.value);
}

std::string label_of(const std::string& key, const Choice& choice) {
  if (choice.unknown) return key + " open";
  return key + (choice.set ? " = " : " unset: ") + to_text(choice.value);
}

Term member_of(const std::vector<std::pair<Value, Term>>& members, const Value& element) {
  for (const auto& [value, term] : members) {
    if (rule_equal(Scalar::of(value), Scalar::of(element))) return term;
  }
  return kFalse;
}

}  // namespace

Encoding::Encoding(Smt& smt, const RuleIndex& index, const Facts& facts)
    : smt_(smt), index_(index), facts_(facts) {}

void Encoding::open(FactId key, Domain domain) {
  Variable variable;
  const std::string& name = facts_.names->name(key);
  if (domain.choices.size() == 1 && !domain.any_subset) {
    variable.choices = {kTrue};
  } else {
    for (const Choice& choice : domain.choices)
      variable.choices.push_back(smt_.variable(label_of(name, choice)));
    std::vector<Term> all = variable.choices;
    if (domain.any_subset) {
      variable.subset = smt_.variable(name + " is a list");
      all.push_back(variable.subset);
      for (const std::string& token : domain.tokens)
        variable.members.push_back(smt_.variable(name + " has " + token));
    }
    smt_.require_exactly_one(all);
  }
  variable.domain = std::move(domain);
  variables_.insert_or_assign(key, std::move(variable));
}

std::vector<FactId> Encoding::open_keys() const {
  std::vector<FactId> keys;
  for (const auto& [key, variable] : variables_) keys.push_back(key);
  return keys;
}

Term Encoding::stays(FactId key) const {
  const auto found = variables_.find(key);
  return found == variables_.end() ? kTrue : found->second.choices.at(0);
}

Term Encoding::chosen(FactId key, std::size_t choice) const {
  return variables_.at(key).choices.at(choice);
}
Term Encoding::is_subset(FactId key) const {
  return variables_.at(key).subset;
}
Term Encoding::member(FactId key, std::size_t token) const {
  return variables_.at(key).members.at(token);
}

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

Symbolic Encoding::initial(FactId fact) {
  Symbolic value;
  const auto found = variables_.find(fact);
  if (found == variables_.end()) {
    value.cases.push_back(
        {kTrue, fact < facts_.values.size() ? scalar_of(facts_.values[fact]) : Scalar::unknown()});
    return value;
  }
  const Variable& variable = found->second;
  // The current state may be a version or unknown, which a Choice cannot say: the fact itself does.
  add_case(value, variable.choices[0],
           variable.domain.choices[0].unknown ? Scalar::unknown()
           : facts_.values[fact].is_version   ? scalar_of(facts_.values[fact])
                                              : scalar_of(variable.domain.choices[0]));
  for (std::size_t i = 1; i < variable.choices.size(); ++i) {
    add_case(value, variable.choices[i], scalar_of(variable.domain.choices[i]));
  }
  value.set_guard = variable.subset;
  for (std::size_t i = 0; i < variable.members.size(); ++i) {
    value.members.emplace_back(Value(variable.domain.tokens[i]), variable.members[i]);
  }
  return value;
}

Term Encoding::set_term(FactId fact) {
  const auto found = variables_.find(fact);
  if (found == variables_.end()) return smt_.constant(fact < facts_.values.size() && facts_.values[fact].set);
  const Variable& variable = found->second;
  std::vector<Term> ways{variable.subset};
  for (std::size_t i = 0; i < variable.choices.size(); ++i) {
    if (variable.domain.choices[i].set) ways.push_back(variable.choices[i]);
  }
  return smt_.any(std::move(ways));
}

const Symbolic& Encoding::fact_before(FactId fact, std::uint32_t position) {
  const std::optional<std::uint32_t> writer = index_.last_writer(fact, position);
  const std::uint64_t key = (static_cast<std::uint64_t>(fact) << 32) | (writer ? *writer + 1 : 0);
  if (const auto found = versions_.find(key); found != versions_.end()) return found->second;
  Symbolic value;
  if (!writer) {
    value = initial(fact);
  } else {
    const RuleItem& item = index_.item(*writer);
    if (item.kind == RuleItem::Kind::define) {
      value = evaluate(item.value, *writer);
    } else {
      const Condition when = item.has_when ? condition(item.when, *writer) : Condition{kTrue, kFalse};
      value = fact_before(fact, *writer);
      for (const ResolvedAction& action : item.assignments) {
        if (action.key != fact) continue;
        Symbolic unknown;
        unknown.cases.push_back({kTrue, Scalar::unknown()});
        value = merge(when.yes, evaluate(action.value, *writer), merge(when.no, value, unknown));
      }
    }
  }
  return versions_.emplace(key, std::move(value)).first->second;
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
          std::none_of(then.members.begin(), then.members.end(), [&e = element](const auto& known) {
            return rule_equal(Scalar::of(known.first), Scalar::of(e));
          })) {
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
      if (rule_equal(Scalar::of(known), Scalar::of(element))) {
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

template <typename Apply>
Symbolic Encoding::combine(const Symbolic& a, const Symbolic& b, const Apply& apply) {
  // A set as operand of what takes no sets: its content does not matter, so an empty one stands for it.
  const auto cases_of = [](const Symbolic& value) {
    std::vector<Symbolic::Case> cases = value.cases;
    if (value.set_guard != kFalse) {
      Scalar set = Scalar::of(Value(Value::List{}));
      set.as_set = true;
      cases.push_back({value.set_guard, set});
    }
    return cases;
  };
  const std::vector<Symbolic::Case> left = cases_of(a);
  const std::vector<Symbolic::Case> right = cases_of(b);
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
  if (first.set_guard != kFalse && (expr.name == "length" || expr.name == "sum")) {
    Symbolic only_set;
    only_set.set_guard = first.set_guard;
    only_set.members = first.members;
    Symbolic counted = cardinality(to_set(only_set));
    if (expr.name == "sum") {
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
  const Symbolic value = bare ? fact_before(fact, position) : evaluate(expr.children[0], position);
  std::vector<Term> yes;
  for (const Symbolic::Case& entry : value.cases) {
    if (is_kind(entry.scalar, expr.name)) yes.push_back(entry.guard);
  }
  if (expr.name == "list") yes.push_back(value.set_guard);
  return decided(smt_.any(std::move(yes)), unknown_guard(value));
}

Condition Encoding::condition(const TypedExpr& expr, std::uint32_t position) {
  const auto child = [&](std::size_t i) { return condition(expr.children.at(i), position); };
  const auto value = [&](std::size_t i) { return evaluate(expr.children.at(i), position); };
  const auto flipped = [](const Condition& a) { return Condition{a.no, a.yes}; };
  switch (expr.op) {
    case ExprOp::not_:
      return flipped(child(0));
    case ExprOp::and_:
    case ExprOp::or_: {
      std::vector<Term> yes, no;
      for (std::size_t i = 0; i < expr.children.size(); ++i) {
        const Condition part = child(i);
        yes.push_back(part.yes);
        no.push_back(part.no);
      }
      if (expr.op == ExprOp::and_) return {smt_.all(std::move(yes)), smt_.any(std::move(no))};
      return {smt_.any(std::move(yes)), smt_.all(std::move(no))};
    }
    case ExprOp::implies: {
      const Condition a = child(0), b = child(1);
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
      return merge(smt_.any(std::move(none)), value(1), a);
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

Condition Encoding::judge(std::uint32_t position) {
  if (const auto found = verdicts_.find(position); found != verdicts_.end()) return found->second;
  const RuleItem& item = index_.item(position);
  const Condition when = item.has_when ? condition(item.when, position) : Condition{kTrue, kFalse};
  const Condition require = condition(item.require, position);
  const Condition verdict{smt_.either(when.no, require.yes), smt_.both(when.yes, require.no)};
  verdicts_.emplace(position, verdict);
  return verdict;
}

Term Encoding::violated(std::uint32_t position) {
  return judge(position).no;
}

Term Encoding::undecided(std::uint32_t position) {
  const Condition verdict = judge(position);
  return smt_.negate(smt_.either(verdict.yes, verdict.no));
}

Choice Encoding::decode(FactId key) const {
  const Variable& variable = variables_.at(key);
  for (std::size_t i = 0; i < variable.choices.size(); ++i) {
    if (smt_.value(variable.choices[i])) return variable.domain.choices[i];
  }
  Value::List list;
  for (std::size_t i = 0; i < variable.members.size(); ++i) {
    if (smt_.value(variable.members[i])) list.emplace_back(variable.domain.tokens[i]);
  }
  return {true, false, Value(std::move(list))};
}

Scalar Encoding::decode(const Symbolic& value) const {
  for (const Symbolic::Case& entry : value.cases) {
    if (smt_.value(entry.guard)) return entry.scalar;
  }
  Scalar set = Scalar::of(Value(Value::List{}));
  set.as_set = true;
  for (const auto& [element, term] : value.members) {
    if (smt_.value(term)) set.value.list().push_back(element);
  }
  return set;
}

}  // namespace capstan
