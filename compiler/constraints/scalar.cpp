#include "compiler/constraints/scalar.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

namespace capstan {
namespace {

bool equal_values(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) {
    if (a.kind() == b.kind()) return a == b;
    return a.number() == b.number();
  }
  if (a.kind() != b.kind()) return false;
  if (a.kind() == Value::Kind::list) {
    const auto& left = a.list();
    const auto& right = b.list();
    return std::equal(left.begin(), left.end(), right.begin(), right.end(), equal_values);
  }
  return a == b;
}

bool equal_sets(const std::vector<Value>& a, const std::vector<Value>& b) {
  return a.size() == b.size() &&
         std::all_of(a.begin(), a.end(), [&b](const Value& element) { return has_element(b, element); });
}

Scalar truth(bool value) {
  return Scalar::of(Value(value));
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

Scalar arithmetic(ExprOp op, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return Scalar::none();
  if (a.kind() == Value::Kind::integer && b.kind() == Value::Kind::integer && op != ExprOp::divide) {
    const std::int64_t left = a.integer();
    const std::int64_t right = b.integer();
    std::int64_t result = 0;
    switch (op) {
      case ExprOp::add:
        if (__builtin_add_overflow(left, right, &result)) return Scalar::none();
        break;
      case ExprOp::subtract:
        if (__builtin_sub_overflow(left, right, &result)) return Scalar::none();
        break;
      case ExprOp::multiply:
        if (__builtin_mul_overflow(left, right, &result)) return Scalar::none();
        break;
      case ExprOp::floor_divide:
      case ExprOp::modulo: {
        if (right == 0 || (left == std::numeric_limits<std::int64_t>::min() && right == -1))
          return Scalar::none();
        std::int64_t quotient = left / right;
        if (left % right != 0 && (left < 0) != (right < 0)) --quotient;
        result = op == ExprOp::floor_divide ? quotient : left - quotient * right;
        break;
      }
      default:
        return Scalar::none();
    }
    return Scalar::of(Value(result));
  }
  const double left = a.number();
  const double right = b.number();
  switch (op) {
    case ExprOp::add:
      return Scalar::of(Value(left + right));
    case ExprOp::subtract:
      return Scalar::of(Value(left - right));
    case ExprOp::multiply:
      return Scalar::of(Value(left * right));
    case ExprOp::divide:
      return right == 0 ? Scalar::none() : Scalar::of(Value(left / right));
    case ExprOp::floor_divide:
      return right == 0 ? Scalar::none() : Scalar::of(Value(std::floor(left / right)));
    case ExprOp::modulo: {
      if (right == 0) return Scalar::none();
      double rest = std::fmod(left, right);
      if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
      return Scalar::of(Value(rest));
    }
    default:
      return Scalar::none();
  }
}

/// -1, 0, 1, or nothing when the two do not compare.
std::optional<int> order(const Scalar& a, const Scalar& b) {
  if (a.tag == Scalar::Tag::version && b.tag == Scalar::Tag::version) {
    return a.version < b.version ? -1 : a.version == b.version ? 0 : 1;
  }
  if (a.tag != Scalar::Tag::value || b.tag != Scalar::Tag::value) return std::nullopt;
  if (!a.value.is_number() || !b.value.is_number()) return std::nullopt;
  if (a.value.kind() == Value::Kind::integer && b.value.kind() == Value::Kind::integer) {
    return a.value.integer() < b.value.integer() ? -1 : a.value.integer() == b.value.integer() ? 0 : 1;
  }
  const double left = a.value.number();
  const double right = b.value.number();
  if (std::isnan(left) || std::isnan(right)) return std::nullopt;
  return left < right ? -1 : left == right ? 0 : 1;
}

const std::string* text_of(const Scalar& a) {
  return a.tag == Scalar::Tag::value && a.value.kind() == Value::Kind::string ? &a.value.string() : nullptr;
}

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

Value integer_of(const Value& value) {
  if (value.kind() == Value::Kind::integer) return value;
  if (value.kind() != Value::Kind::string) return {};
  const std::string text = trimmed(value.string());
  std::size_t at = 0;
  const bool negative = !text.empty() && text[0] == '-';
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) ++at;
  if (at == text.size()) return {};
  std::int64_t number = 0;
  for (; at < text.size(); ++at) {
    if (text[at] < '0' || text[at] > '9') return {};
    if (__builtin_mul_overflow(number, std::int64_t{10}, &number)) return {};
    if (__builtin_add_overflow(number, std::int64_t{text[at] - '0'}, &number)) return {};
  }
  return Value(negative ? -number : number);
}

}  // namespace

bool has_element(const std::vector<Value>& set, const Value& element) {
  return std::any_of(set.begin(), set.end(),
                     [&](const Value& known) { return equal_values(known, element); });
}

std::vector<Value> distinct_elements(const Value& value) {
  std::vector<Value> out;
  if (value.kind() != Value::Kind::list) return out;
  for (const Value& item : value.list()) {
    if (!has_element(out, item)) out.push_back(item);
  }
  return out;
}

bool rule_equal(const Scalar& a, const Scalar& b) {
  if (a.tag != b.tag) return false;
  if (a.tag == Scalar::Tag::version) return a.version == b.version;
  if (a.tag == Scalar::Tag::unknown) return false;
  const bool lists = a.value.kind() == Value::Kind::list && b.value.kind() == Value::Kind::list;
  if (lists && (a.as_set || b.as_set))
    return equal_sets(distinct_elements(a.value), distinct_elements(b.value));
  return equal_values(a.value, b.value);
}

Scalar apply_binary(ExprOp op, const Scalar& a, const Scalar& b) {
  switch (op) {
    case ExprOp::equal:
      return truth(rule_equal(a, b));
    case ExprOp::not_equal:
      return truth(!rule_equal(a, b));
    case ExprOp::less:
    case ExprOp::less_equal:
    case ExprOp::greater:
    case ExprOp::greater_equal: {
      const std::optional<int> sign = order(a, b);
      if (!sign) return truth(false);
      switch (op) {
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
    default:
      break;
  }
  if (a.tag != Scalar::Tag::value || b.tag != Scalar::Tag::value) return Scalar::none();
  return arithmetic(op, a.value, b.value);
}

Scalar apply_negate(const Scalar& a) {
  if (a.tag != Scalar::Tag::value) return Scalar::none();
  if (a.value.kind() == Value::Kind::floating) return Scalar::of(Value(-a.value.floating()));
  if (a.value.kind() != Value::Kind::integer) return Scalar::none();
  if (a.value.integer() == std::numeric_limits<std::int64_t>::min()) return Scalar::none();
  return Scalar::of(Value(-a.value.integer()));
}

std::vector<Value> parts_of(const Value& value, const std::string& separator) {
  if (value.kind() != Value::Kind::string) return distinct_elements(value);
  std::vector<Value> out;
  const std::string& text = value.string();
  std::size_t start = 0;
  while (true) {
    const std::size_t end = separator.empty() ? std::string::npos : text.find(separator, start);
    const Value part(trimmed(text.substr(start, end == std::string::npos ? end : end - start)));
    if (!has_element(out, part)) out.push_back(part);
    if (end == std::string::npos) break;
    start = end + separator.size();
  }
  return out;
}

std::vector<Value> tokens_of(const Value& value) {
  if (value.kind() != Value::Kind::string) return distinct_elements(value);
  std::vector<Value> out;
  const std::string& text = value.string();
  std::size_t start = 0;
  while (true) {
    const std::size_t end = text.find(',', start);
    const Value part(text.substr(start, end == std::string::npos ? end : end - start));
    if (!has_element(out, part)) out.push_back(part);
    if (end == std::string::npos) break;
    start = end + 1;
  }
  return out;
}

Value allocator_option(const std::string& text, const std::string& option) {
  // Options are `name:value`, separated by commas outside brackets; blanks mean nothing; the last one wins.
  Value found;
  std::size_t at = 0;
  while (at <= text.size()) {
    int depth = 0;
    std::size_t end = at;
    for (; end < text.size(); ++end) {
      if (text[end] == '[') ++depth;
      if (text[end] == ']') --depth;
      if (text[end] == ',' && depth <= 0) break;
    }
    const std::string part = text.substr(at, end - at);
    const std::size_t colon = part.find(':');
    if (colon != std::string::npos && trimmed(part.substr(0, colon)) == option)
      found = Value(trimmed(part.substr(colon + 1)));
    at = end + 1;
  }
  return found;
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
  const auto second_text = [&]() { return arguments.size() > 1 ? text_of(arguments[1]) : nullptr; };
  if (name == "size") {
    return Scalar::of(Value(static_cast<std::int64_t>(distinct_elements(first.value).size())));
  }
  if (name == "length") {
    if (const std::string* text = text_of(first))
      return Scalar::of(Value(static_cast<std::int64_t>(text->size())));
    if (first.value.kind() != Value::Kind::list)
      return first.is_none() ? Scalar::of(Value(0)) : Scalar::none();
    const std::size_t length =
        first.as_set ? distinct_elements(first.value).size() : first.value.list().size();
    return Scalar::of(Value(static_cast<std::int64_t>(length)));
  }
  if (name == "sum") {
    if (first.value.kind() != Value::Kind::list)
      return first.is_none() ? Scalar::of(Value(0)) : Scalar::none();
    Scalar total = Scalar::of(Value(0));
    for (const Value& item : first.value.list()) {
      total = arithmetic(ExprOp::add, total.value, item);
      if (total.is_none()) return total;
    }
    return total;
  }
  if (name == "contains" || name == "starts_with" || name == "ends_with") {
    const std::string* text = text_of(first);
    const std::string* part = second_text();
    if (text == nullptr || part == nullptr) return truth(false);
    if (name == "contains") return truth(text->find(*part) != std::string::npos);
    return truth(name == "starts_with" ? text->starts_with(*part) : text->ends_with(*part));
  }
  if (name == "lower")
    return text_of(first) != nullptr ? Scalar::of(Value(lower(*text_of(first)))) : Scalar::none();
  if (name == "abs") {
    if (!first.value.is_number()) return Scalar::none();
    return first.value.number() < 0 ? apply_negate(first) : first;
  }
  if (name == "min" || name == "max") {
    if (arguments.size() < 2) return Scalar::none();
    const std::optional<int> sign = order(first, arguments[1]);
    if (!sign) return Scalar::none();
    return (name == "min") == (*sign <= 0) ? first : arguments[1];
  }
  if (name == "divides") {
    if (arguments.size() < 2) return truth(false);
    const Scalar rest = arithmetic(ExprOp::modulo, arguments[1].value, first.value);
    return truth(rest.value.is_number() && rest.value.number() == 0);
  }
  if (name == "integer") return Scalar::of(integer_of(first.value));
  if (name == "allocator") {
    const std::string* text = text_of(first);
    const std::string* option = second_text();
    return text != nullptr && option != nullptr ? Scalar::of(allocator_option(*text, *option))
                                                : Scalar::none();
  }
  if (name == "field") {
    const std::string* field = second_text();
    if (field == nullptr || first.value.kind() != Value::Kind::table) return Scalar::none();
    for (const auto& [key, item] : first.value.table()) {
      if (key == *field) return Scalar::of(item);
    }
    return Scalar::none();
  }
  return Scalar::unknown();
}

}  // namespace capstan
