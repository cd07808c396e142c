#include "compiler/ruleset/expression_evaluator.h"

#include <algorithm>
#include <utility>

#include "compiler/config/pipeline_layout.h"
#include "compiler/ruleset/rule_values.h"
#include "grammar/source/ascii_case.h"

namespace capstan {
namespace {

Truth truth(bool value) {
  return value ? Truth::yes : Truth::no;
}

Truth flip(Truth value) {
  return value == Truth::unknown ? value : value == Truth::yes ? Truth::no : Truth::yes;
}

ValueView view_of(Truth value) {
  return value == Truth::unknown ? ValueView::unknown() : ValueView::of(value == Truth::yes);
}

const Value::List& elements_of(const ValueView& view) {
  static const Value::List kNothing;
  return view.has_elements() ? view.value->list() : kNothing;
}

bool same(const ValueView& a, const ValueView& b) {
  using Tag = ValueView::Tag;
  if (a.is_number() && b.is_number()) {
    if (a.tag == Tag::integer && b.tag == Tag::integer) return a.integer == b.integer;
    return order_numbers(a.to_value(), b.to_value()) == 0;
  }
  if (a.has_elements() && b.has_elements()) {
    if (a.tag == Tag::list && b.tag == Tag::list) return same_value(*a.value, *b.value);
    return same_set(a.value->list(), b.value->list());
  }
  if (a.tag != b.tag) return false;
  switch (a.tag) {
    case Tag::none:
      return true;
    case Tag::boolean:
      return a.boolean == b.boolean;
    case Tag::string:
      return a.value->string() == b.value->string();
    case Tag::table:
      return *a.value == *b.value;
    case Tag::version:
      return *a.version == *b.version;
    default:
      return false;
  }
}

std::optional<int> order(const ValueView& a, const ValueView& b) {
  if (a.tag == ValueView::Tag::integer && b.tag == ValueView::Tag::integer) {
    return a.integer < b.integer ? -1 : a.integer == b.integer ? 0 : 1;
  }
  if (a.is_number() && b.is_number()) return order_numbers(a.to_value(), b.to_value());
  if (a.tag == ValueView::Tag::version && b.tag == ValueView::Tag::version) {
    return *a.version < *b.version ? -1 : *a.version == *b.version ? 0 : 1;
  }
  return std::nullopt;
}

/// The value behind a string, list, set or table; none for scalars.
const Value& referred(const ValueView& view) {
  static const Value kNone;
  return view.tag == ValueView::Tag::string || view.has_elements() || view.tag == ValueView::Tag::table
             ? *view.value
             : kNone;
}

/// A short list of distinct strings that name no enum member: it already is its set of tokens and of plain
/// strings.
bool has_plain_tokens(const ValueView& view) {
  constexpr std::size_t kMost = 16;  // each is compared with those before it
  if (!view.has_elements() || view.value->list().size() > kMost) return false;
  const Value::List& list = view.value->list();
  for (auto element = list.begin(); element != list.end(); ++element) {
    if (element->kind() != Value::Kind::string || enum_member(element->string())) return false;
    if (view.tag == ValueView::Tag::list && std::find(list.begin(), element, *element) != element)
      return false;
  }
  return true;
}

std::string_view text_of(const ValueView& view) {
  return view.tag == ValueView::Tag::string ? std::string_view(view.value->string()) : std::string_view();
}

}  // namespace

ValueView ValueView::of(bool flag) {
  ValueView view = of_tag(Tag::boolean);
  view.boolean = flag;
  return view;
}

ValueView ValueView::of(const Value& value, bool as_set) {
  ValueView view;
  switch (value.kind()) {
    case Value::Kind::none:
      return view;
    case Value::Kind::boolean:
      return of(value.boolean());
    case Value::Kind::integer:
      view.tag = Tag::integer;
      view.integer = value.integer();
      return view;
    case Value::Kind::floating:
      view.tag = Tag::floating;
      view.floating = value.floating();
      return view;
    case Value::Kind::string:
      view.tag = Tag::string;
      break;
    case Value::Kind::list:
      view.tag = as_set ? Tag::set : Tag::list;
      break;
    case Value::Kind::table:
      view.tag = Tag::table;
      break;
  }
  view.value = &value;
  return view;
}

ValueView ValueView::of(const Version& version) {
  ValueView view = of_tag(Tag::version);
  view.version = &version;
  return view;
}

Value ValueView::to_value() const {
  switch (tag) {
    case Tag::boolean:
      return Value(boolean);
    case Tag::integer:
      return Value(integer);
    case Tag::floating:
      return Value(floating);
    case Tag::string:
    case Tag::list:
    case Tag::set:
    case Tag::table:
      return *value;
    case Tag::none:
    case Tag::version:
    case Tag::unknown:
      break;
  }
  return {};
}

ValueView ExpressionEvaluator::keep(Value value, bool as_set) {
  switch (value.kind()) {
    case Value::Kind::string:
    case Value::Kind::list:
    case Value::Kind::table:
      return ValueView::of(kept_.emplace_back(std::move(value)), as_set);
    default:
      return ValueView::of(value);  // a scalar is copied into the view
  }
}

ValueView ExpressionEvaluator::read(FactId id) const {
  const Fact& fact = facts_.values[id];
  if (fact.state == Fact::State::unknown) return ValueView::unknown();
  return fact.is_version ? ValueView::of(fact.version) : ValueView::of(fact.value, fact.is_set);
}

ValueView ExpressionEvaluator::evaluate(const TypedExpr& expr) {
  switch (expr.op) {
    case ExprOp::literal:
      return ValueView::of(expr.literal);
    case ExprOp::version:
      return ValueView::of(expr.version);
    case ExprOp::name:
      return read(expr.fact);
    case ExprOp::set: {
      if (expr.children.empty()) return ValueView::of(expr.literal, true);
      Value::List elements;
      for (const TypedExpr& child : expr.children) {
        const ValueView element = evaluate(child);
        if (element.is_unknown()) return element;
        elements.push_back(element.to_value());
      }
      return keep(Value(unique_elements(elements)), true);
    }
    case ExprOp::union_:
    case ExprOp::minus:
    case ExprOp::intersect:
      return set_operation(expr);
    case ExprOp::coalesce: {
      const ValueView first = evaluate(expr.children[0]);
      return first.tag == ValueView::Tag::none ? evaluate(expr.children[1]) : first;
    }
    case ExprOp::add:
    case ExprOp::subtract:
    case ExprOp::multiply:
    case ExprOp::divide:
    case ExprOp::floor_divide:
    case ExprOp::modulo: {
      const ValueView a = evaluate(expr.children[0]);
      const ValueView b = evaluate(expr.children[1]);
      if (a.is_unknown() || b.is_unknown()) return ValueView::unknown();
      if (!a.is_number() || !b.is_number()) return {};
      return keep(apply_arithmetic(expr.op, a.to_value(), b.to_value()));
    }
    case ExprOp::negate: {
      const ValueView a = evaluate(expr.children[0]);
      if (a.is_unknown()) return a;
      return a.is_number() ? keep(negate_number(a.to_value())) : ValueView();
    }
    case ExprOp::conditional:
      switch (condition(expr.children[0])) {
        case Truth::yes:
          return evaluate(expr.children[1]);
        case Truth::no:
          return evaluate(expr.children[2]);
        case Truth::unknown:
          return ValueView::unknown();
      }
      return ValueView::unknown();
    case ExprOp::call:
      return call(expr);
    default:
      return view_of(condition(expr));
  }
}

Truth ExpressionEvaluator::condition(const TypedExpr& expr) {
  switch (expr.op) {
    case ExprOp::not_:
      return flip(condition(expr.children[0]));
    case ExprOp::and_:
    case ExprOp::or_: {
      const Truth decisive = expr.op == ExprOp::and_ ? Truth::no : Truth::yes;
      Truth result = flip(decisive);
      for (const TypedExpr& child : expr.children) {
        const Truth part = condition(child);
        if (part == decisive) return part;
        if (part == Truth::unknown) result = part;
      }
      return result;
    }
    case ExprOp::implies: {
      const Truth a = condition(expr.children[0]);
      if (a == Truth::no) return Truth::yes;
      const Truth b = condition(expr.children[1]);
      if (b == Truth::yes) return b;
      return a == Truth::yes && b == Truth::no ? Truth::no : Truth::unknown;
    }
    case ExprOp::iff: {
      const Truth a = condition(expr.children[0]);
      const Truth b = condition(expr.children[1]);
      return a == Truth::unknown || b == Truth::unknown ? Truth::unknown : truth(a == b);
    }
    case ExprOp::equal:
    case ExprOp::not_equal:
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal:
      return compare(expr);
    case ExprOp::in:
      return contains(expr);
    case ExprOp::not_in:
      return flip(contains(expr));
    case ExprOp::subset:
    case ExprOp::overlaps:
      return compare_sets(expr);
    case ExprOp::is:
      return is_kind(expr);
    case ExprOp::is_not:
      return flip(is_kind(expr));
    default: {
      const ValueView value = evaluate(expr);
      if (value.is_unknown()) return Truth::unknown;
      return truth(value.tag == ValueView::Tag::boolean && value.boolean);
    }
  }
}

Truth ExpressionEvaluator::compare(const TypedExpr& expr) {
  const ValueView a = evaluate(expr.children[0]);
  const ValueView b = evaluate(expr.children[1]);
  if (a.is_unknown() || b.is_unknown()) return Truth::unknown;
  if (expr.op == ExprOp::equal) return truth(same(a, b));
  if (expr.op == ExprOp::not_equal) return truth(!same(a, b));
  const std::optional<int> sign = order(a, b);
  if (!sign) return Truth::no;
  switch (expr.op) {
    case ExprOp::less:
      return truth(*sign < 0);
    case ExprOp::less_equal:
      return truth(*sign <= 0);
    case ExprOp::greater:
      return truth(*sign > 0);
    default:
      return truth(*sign >= 0);
  }
}

Truth ExpressionEvaluator::contains(const TypedExpr& expr) {
  const ValueView element = evaluate(expr.children[0]);
  const ValueView set = evaluate(expr.children[1]);
  if (element.is_unknown() || set.is_unknown()) return Truth::unknown;
  if (!set.has_elements() || element.tag == ValueView::Tag::version) return Truth::no;
  for (const Value& value : set.value->list()) {
    if (same(element, ValueView::of(value))) return Truth::yes;
  }
  return Truth::no;
}

Truth ExpressionEvaluator::compare_sets(const TypedExpr& expr) {
  const ValueView a = evaluate(expr.children[0]);
  const ValueView b = evaluate(expr.children[1]);
  if (a.is_unknown() || b.is_unknown()) return Truth::unknown;
  return truth(expr.op == ExprOp::subset ? is_subset(elements_of(a), elements_of(b))
                                         : overlap(elements_of(a), elements_of(b)));
}

ValueView ExpressionEvaluator::set_operation(const TypedExpr& expr) {
  const ValueView a = evaluate(expr.children[0]);
  const ValueView b = evaluate(expr.children[1]);
  if (a.is_unknown() || b.is_unknown()) return ValueView::unknown();
  Value::List result;
  if (expr.op == ExprOp::union_) {
    result = elements_of(a);
    result.insert(result.end(), elements_of(b).begin(), elements_of(b).end());
  } else {
    const Membership members(elements_of(b));
    for (const Value& value : elements_of(a)) {
      if (members.contains(value) == (expr.op == ExprOp::intersect)) result.push_back(value);
    }
  }
  return keep(Value(unique_elements(result)), true);
}

Truth ExpressionEvaluator::is_kind(const TypedExpr& expr) {
  if (expr.kind == KindWord::kSet && expr.children.empty()) return truth(facts_.values[expr.fact].set);
  const ValueView value = expr.children.empty() ? read(expr.fact) : evaluate(expr.children[0]);
  switch (value.tag) {
    case ValueView::Tag::unknown:
      return Truth::unknown;
    case ValueView::Tag::none:
      return truth(expr.kind == KindWord::kNone);
    case ValueView::Tag::boolean:
      return truth(expr.kind == KindWord::kBool);
    case ValueView::Tag::integer:
      return truth(expr.kind == KindWord::kInt);
    case ValueView::Tag::floating:
      return truth(expr.kind == KindWord::kFloat);
    case ValueView::Tag::string:
      return truth(expr.kind == KindWord::kString);
    case ValueView::Tag::list:
    case ValueView::Tag::set:
      return truth(expr.kind == KindWord::kList);
    case ValueView::Tag::table:
      return truth(expr.kind == KindWord::kTable);
    case ValueView::Tag::version:
      return Truth::no;
  }
  return Truth::no;
}

ValueView ExpressionEvaluator::call(const TypedExpr& expr) {
  constexpr std::size_t kMostArguments = 2;
  ValueView argument[kMostArguments];
  for (std::size_t index = 0; index < expr.children.size() && index < kMostArguments; ++index) {
    argument[index] = evaluate(expr.children[index]);
  }
  const ValueView &a = argument[0], &b = argument[1];
  if (a.is_unknown() || b.is_unknown()) return ValueView::unknown();
  const bool texts = a.tag == ValueView::Tag::string && b.tag == ValueView::Tag::string;
  switch (expr.function) {
    case RuleFunction::kTokens:
      if (has_plain_tokens(a)) return ValueView::of(*a.value, true);
      return keep(Value(module_tokens(referred(a))), true);
    case RuleFunction::kMembers:
      return keep(Value(module_members(referred(a))), true);
    case RuleFunction::kStrings:
      if (has_plain_tokens(a)) return ValueView::of(*a.value, true);
      return keep(Value(module_strings(referred(a))), true);
    case RuleFunction::kSplit:
      return keep(Value(split_parts(referred(a), text_of(b))), true);
    case RuleFunction::kSize:
      return keep(Value(static_cast<std::int64_t>(unique_elements(elements_of(a)).size())));
    case RuleFunction::kLength:
      if (a.tag == ValueView::Tag::string)
        return keep(Value(static_cast<std::int64_t>(a.value->string().size())));
      if (a.tag == ValueView::Tag::list)
        return keep(Value(static_cast<std::int64_t>(a.value->list().size())));
      if (a.tag == ValueView::Tag::set) return keep(Value(static_cast<std::int64_t>(a.value->list().size())));
      return a.tag == ValueView::Tag::none ? keep(Value(0)) : ValueView();
    case RuleFunction::kSum:
      return keep(sum_elements(a.to_value()));
    case RuleFunction::kProduct:
      return keep(multiply_elements(a.to_value()));
    case RuleFunction::kContains:
      return ValueView::of(texts && text_of(a).find(text_of(b)) != std::string_view::npos);
    case RuleFunction::kStartsWith:
      return ValueView::of(texts && text_of(a).starts_with(text_of(b)));
    case RuleFunction::kEndsWith:
      return ValueView::of(texts && text_of(a).ends_with(text_of(b)));
    case RuleFunction::kBefore:
      return texts ? keep(text_before(text_of(a), text_of(b))) : ValueView();
    case RuleFunction::kAfter:
      return texts ? keep(text_after(text_of(a), text_of(b))) : ValueView();
    case RuleFunction::kCount:
      return keep(Value(texts ? count_text(text_of(a), text_of(b)) : 0));
    case RuleFunction::kCharacters:
      return keep(Value(text_characters(referred(a))), true);
    case RuleFunction::kLower:
      return a.tag == ValueView::Tag::string ? keep(Value(lower_ascii(text_of(a)))) : ValueView();
    case RuleFunction::kMin:
    case RuleFunction::kMax: {
      const std::optional<int> sign = order(a, b);
      if (!sign) return {};
      return (expr.function == RuleFunction::kMin) == (*sign <= 0) ? a : b;
    }
    case RuleFunction::kAbs: {
      if (!a.is_number()) return {};
      const Value value = a.to_value();
      return value.number() < 0 ? keep(negate_number(value)) : a;
    }
    case RuleFunction::kDivides: {
      if (!a.is_number() || !b.is_number()) return ValueView::of(false);
      const Value rest = apply_arithmetic(ExprOp::modulo, b.to_value(), a.to_value());
      return ValueView::of(rest.is_number() && rest.number() == 0);
    }
    case RuleFunction::kInteger:
      return keep(integer_from(a.to_value()));
    case RuleFunction::kAllocator:
      return texts ? keep(allocator_value(text_of(a), text_of(b))) : ValueView();
    case RuleFunction::kAllocatorProblem:
      return a.tag == ValueView::Tag::string ? keep(allocator_problem(text_of(a))) : ValueView();
    case RuleFunction::kField:
      if (a.tag != ValueView::Tag::table || b.tag != ValueView::Tag::string) return {};
      for (const auto& [key, item] : a.value->table()) {
        if (key == text_of(b)) return ValueView::of(item);
      }
      return {};
    case RuleFunction::kLayout:
      return b.tag == ValueView::Tag::string ? keep(pipeline_layout_fact(a.to_value(), text_of(b)))
                                             : ValueView();
    case RuleFunction::kNone:
      break;
  }
  return ValueView::unknown();
}

}  // namespace capstan
