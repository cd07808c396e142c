#include "compiler/constraints/scalar.h"

#include <algorithm>
#include <optional>

#include "compiler/config/pipeline_layout.h"
#include "compiler/ruleset/rule_values.h"
#include "grammar/source/ascii_case.h"

namespace capstan {
namespace {

Scalar as_truth(bool value) {
  return Scalar::of(Value(value));
}

/// -1, 0, 1, or nothing when the two do not compare.
std::optional<int> order(const Scalar& a, const Scalar& b) {
  if (a.tag == Scalar::Tag::version && b.tag == Scalar::Tag::version) {
    return a.version < b.version ? -1 : a.version == b.version ? 0 : 1;
  }
  if (a.tag != Scalar::Tag::value || b.tag != Scalar::Tag::value) return std::nullopt;
  return order_numbers(a.value, b.value);
}

const std::string* text_of(const Scalar& a) {
  return a.tag == Scalar::Tag::value && a.value.kind() == Value::Kind::string ? &a.value.string() : nullptr;
}

}  // namespace

bool has_element(const std::vector<Value>& set, const Value& element) {
  return std::any_of(set.begin(), set.end(), [&](const Value& known) { return same_value(known, element); });
}

std::vector<Value> distinct_elements(const Value& value) {
  return value.kind() == Value::Kind::list ? unique_elements(value.list()) : std::vector<Value>{};
}

bool rule_equal(const Scalar& a, const Scalar& b) {
  if (a.tag != b.tag) return false;
  if (a.tag == Scalar::Tag::version) return a.version == b.version;
  if (a.tag == Scalar::Tag::unknown) return false;
  const bool lists = a.value.kind() == Value::Kind::list && b.value.kind() == Value::Kind::list;
  if (lists && (a.as_set || b.as_set)) return same_set(a.value.list(), b.value.list());
  return same_value(a.value, b.value);
}

Scalar apply_binary(ExprOp op, const Scalar& a, const Scalar& b) {
  switch (op) {
    case ExprOp::equal:
      return as_truth(rule_equal(a, b));
    case ExprOp::not_equal:
      return as_truth(!rule_equal(a, b));
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal: {
      const std::optional<int> sign = order(a, b);
      if (!sign) return as_truth(false);
      switch (op) {
        case ExprOp::less:
          return as_truth(*sign < 0);
        case ExprOp::less_equal:
          return as_truth(*sign <= 0);
        case ExprOp::greater:
          return as_truth(*sign > 0);
        default:
          return as_truth(*sign >= 0);
      }
    }
    default:
      break;
  }
  if (a.tag != Scalar::Tag::value || b.tag != Scalar::Tag::value) return Scalar::none();
  return Scalar::of(apply_arithmetic(op, a.value, b.value));
}

Scalar apply_negate(const Scalar& a) {
  return a.tag == Scalar::Tag::value ? Scalar::of(negate_number(a.value)) : Scalar::none();
}

bool gives_set(const std::string& function) {
  return function == "tokens" || function == "members" || function == "strings" || function == "split" ||
         function == "characters";
}

std::vector<Value> apply_set_function(const std::string& name, const Value& value,
                                      const std::string& separator) {
  if (name == "members") return module_members(value);
  if (name == "strings") return module_strings(value);
  if (name == "split") return split_parts(value, separator);
  if (name == "characters") return text_characters(value);
  return module_tokens(value);
}

bool is_kind(const Scalar& a, const std::string& word) {
  if (a.tag != Scalar::Tag::value) return false;
  switch (a.value.kind()) {
    case Value::Kind::none:
      return word == "none";
    case Value::Kind::boolean:
      return word == "bool";
    case Value::Kind::integer:
      return word == "int";
    case Value::Kind::floating:
      return word == "float";
    case Value::Kind::string:
      return word == "string";
    case Value::Kind::list:
      return word == "list";
    case Value::Kind::table:
      return word == "table";
  }
  return false;
}

Scalar apply_function(const std::string& name, const std::vector<Scalar>& arguments) {
  const Scalar& first = arguments.at(0);
  const std::string* text = text_of(first);
  const std::string* second = arguments.size() > 1 ? text_of(arguments[1]) : nullptr;
  if (name == "size")
    return Scalar::of(Value(static_cast<std::int64_t>(distinct_elements(first.value).size())));
  if (name == "length") {
    if (text != nullptr) return Scalar::of(Value(static_cast<std::int64_t>(text->size())));
    if (first.value.kind() != Value::Kind::list)
      return first.is_none() ? Scalar::of(Value(0)) : Scalar::none();
    const std::size_t length =
        first.as_set ? distinct_elements(first.value).size() : first.value.list().size();
    return Scalar::of(Value(static_cast<std::int64_t>(length)));
  }
  if (name == "sum") return Scalar::of(sum_elements(first.value));
  if (name == "product") return Scalar::of(multiply_elements(first.value));
  if (name == "contains")
    return as_truth(text != nullptr && second != nullptr && text->find(*second) != std::string::npos);
  if (name == "starts_with")
    return as_truth(text != nullptr && second != nullptr && text->starts_with(*second));
  if (name == "ends_with") return as_truth(text != nullptr && second != nullptr && text->ends_with(*second));
  const bool texts = text != nullptr && second != nullptr;
  if (name == "before") return texts ? Scalar::of(text_before(*text, *second)) : Scalar::none();
  if (name == "after") return texts ? Scalar::of(text_after(*text, *second)) : Scalar::none();
  if (name == "count") return Scalar::of(Value(texts ? count_text(*text, *second) : 0));
  if (name == "lower") return text != nullptr ? Scalar::of(Value(lower_ascii(*text))) : Scalar::none();
  if (name == "abs") {
    if (!first.value.is_number()) return Scalar::none();
    return first.value.number() < 0 ? apply_negate(first) : first;
  }
  if (name == "min" || name == "max") {
    const std::optional<int> sign = arguments.size() > 1 ? order(first, arguments[1]) : std::nullopt;
    if (!sign) return Scalar::none();
    return (name == "min") == (*sign <= 0) ? first : arguments[1];
  }
  if (name == "divides") {
    if (arguments.size() < 2) return as_truth(false);
    const Value rest = apply_arithmetic(ExprOp::modulo, arguments[1].value, first.value);
    return as_truth(rest.is_number() && rest.number() == 0);
  }
  if (name == "integer") return Scalar::of(integer_from(first.value));
  if (name == "allocator")
    return text != nullptr && second != nullptr ? Scalar::of(allocator_value(*text, *second))
                                                : Scalar::none();
  if (name == "allocator_problem")
    return text != nullptr ? Scalar::of(allocator_problem(*text)) : Scalar::none();
  if (name == "field") {
    if (second == nullptr || first.value.kind() != Value::Kind::table) return Scalar::none();
    for (const auto& [key, item] : first.value.table()) {
      if (key == *second) return Scalar::of(item);
    }
    return Scalar::none();
  }
  if (name == "layout")
    return second != nullptr ? Scalar::of(pipeline_layout_fact(first.value, *second)) : Scalar::none();
  return Scalar::unknown();
}

}  // namespace capstan
