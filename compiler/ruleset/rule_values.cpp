#include "compiler/ruleset/rule_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "grammar/environment/allocator_conf.h"

namespace capstan {
namespace {

// Up to this length a list is searched from front to back.
constexpr std::size_t kShortList = 16;

int sign(bool less, bool equal) {
  return less ? -1 : equal ? 0 : 1;
}

/// A total order that agrees with same_value(), for sorting; NaN stands before all numbers.
int order_values(const Value& a, const Value& b) {
  const auto rank = [](const Value& value) {
    if (value.kind() == Value::Kind::floating) return static_cast<int>(Value::Kind::integer);
    return static_cast<int>(value.kind());
  };
  if (rank(a) != rank(b)) return sign(rank(a) < rank(b), false);
  switch (a.kind()) {
    case Value::Kind::none:
      return 0;
    case Value::Kind::boolean:
      return sign(a.boolean() < b.boolean(), a.boolean() == b.boolean());
    case Value::Kind::integer:
    case Value::Kind::floating: {
      if (const auto order = order_numbers(a, b)) return *order;
      const bool a_nan = std::isnan(a.number()), b_nan = std::isnan(b.number());
      return sign(a_nan && !b_nan, a_nan == b_nan);
    }
    case Value::Kind::string:
      return sign(a.string() < b.string(), a.string() == b.string());
    case Value::Kind::list: {
      const Value::List &left = a.list(), &right = b.list();
      for (std::size_t index = 0; index < left.size() && index < right.size(); ++index) {
        if (const int order = order_values(left[index], right[index]); order != 0) return order;
      }
      return sign(left.size() < right.size(), left.size() == right.size());
    }
    case Value::Kind::table: {
      const Value::Table &left = a.table(), &right = b.table();
      for (std::size_t index = 0; index < left.size() && index < right.size(); ++index) {
        if (const int order = left[index].first.compare(right[index].first); order != 0) return order;
        if (const int order = order_values(left[index].second, right[index].second); order != 0) return order;
      }
      return sign(left.size() < right.size(), left.size() == right.size());
    }
  }
  return 0;
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

std::string_view without_blanks(std::string_view text) {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

/// Splits at every separator; an empty separator splits nothing.
template <typename Take>
void for_parts(std::string_view text, std::string_view separator, const Take& take) {
  while (true) {
    const std::size_t at = separator.empty() ? std::string_view::npos : text.find(separator);
    take(text.substr(0, at));
    if (at == std::string_view::npos) return;
    text.remove_prefix(at + separator.size());
  }
}

}  // namespace

bool same_value(const Value& a, const Value& b) {
  if (a.is_number() && b.is_number()) return order_numbers(a, b) == 0;
  if (a.kind() != b.kind()) return false;
  if (a.kind() == Value::Kind::list) {
    return std::equal(a.list().begin(), a.list().end(), b.list().begin(), b.list().end(), same_value);
  }
  return a == b;
}

std::optional<int> order_numbers(const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return std::nullopt;
  if (a.kind() == Value::Kind::integer && b.kind() == Value::Kind::integer) {
    return sign(a.integer() < b.integer(), a.integer() == b.integer());
  }
  // long double holds every 64-bit integer and every double.
  const auto exact = [](const Value& value) {
    return value.kind() == Value::Kind::integer ? static_cast<long double>(value.integer())
                                                : static_cast<long double>(value.floating());
  };
  const long double left = exact(a), right = exact(b);
  if (std::isnan(left) || std::isnan(right)) return std::nullopt;
  return sign(left < right, left == right);
}

Value apply_arithmetic(ExprOp op, const Value& a, const Value& b) {
  if (!a.is_number() || !b.is_number()) return {};
  if (a.kind() == Value::Kind::integer && b.kind() == Value::Kind::integer && op != ExprOp::divide) {
    const std::int64_t left = a.integer(), right = b.integer();
    std::int64_t result = 0;
    switch (op) {
      case ExprOp::add:
        return __builtin_add_overflow(left, right, &result) ? Value() : Value(result);
      case ExprOp::subtract:
        return __builtin_sub_overflow(left, right, &result) ? Value() : Value(result);
      case ExprOp::multiply:
        return __builtin_mul_overflow(left, right, &result) ? Value() : Value(result);
      case ExprOp::floor_divide:
      case ExprOp::modulo: {
        if (right == 0 || (left == std::numeric_limits<std::int64_t>::min() && right == -1)) return {};
        std::int64_t quotient = left / right;
        if (left % right != 0 && (left < 0) != (right < 0)) --quotient;
        return Value(op == ExprOp::floor_divide ? quotient : left - quotient * right);
      }
      default:
        return {};
    }
  }
  const double left = a.number(), right = b.number();
  switch (op) {
    case ExprOp::add:
      return Value(left + right);
    case ExprOp::subtract:
      return Value(left - right);
    case ExprOp::multiply:
      return Value(left * right);
    case ExprOp::divide:
      return right == 0 ? Value() : Value(left / right);
    case ExprOp::floor_divide:
      return right == 0 ? Value() : Value(std::floor(left / right));
    case ExprOp::modulo: {
      if (right == 0) return {};
      double rest = std::fmod(left, right);
      if (rest != 0 && (rest < 0) != (right < 0)) rest += right;
      return Value(rest);
    }
    default:
      return {};
  }
}

Value negate_number(const Value& value) {
  if (value.kind() == Value::Kind::floating) return Value(-value.floating());
  if (value.kind() != Value::Kind::integer) return {};
  if (value.integer() == std::numeric_limits<std::int64_t>::min()) return {};
  return Value(-value.integer());
}

Membership::Membership(const Value::List& list) : list_(&list) {
  if (list.size() <= kShortList) return;
  sorted_.reserve(list.size());
  for (const Value& value : list) sorted_.push_back(&value);
  std::sort(sorted_.begin(), sorted_.end(),
            [](const Value* a, const Value* b) { return order_values(*a, *b) < 0; });
}

bool Membership::contains(const Value& value) const {
  if (sorted_.empty()) {
    return std::any_of(list_->begin(), list_->end(),
                       [&](const Value& element) { return same_value(element, value); });
  }
  const auto found =
      std::lower_bound(sorted_.begin(), sorted_.end(), &value,
                       [](const Value* a, const Value* b) { return order_values(*a, *b) < 0; });
  return found != sorted_.end() && same_value(**found, value);
}

Value::List unique_elements(const Value::List& list) {
  Value::List unique;
  if (list.size() <= kShortList) {
    for (const Value& value : list) {
      if (std::none_of(unique.begin(), unique.end(),
                       [&](const Value& seen) { return same_value(seen, value); })) {
        unique.push_back(value);
      }
    }
    return unique;
  }
  std::vector<std::size_t> order(list.size());
  for (std::size_t index = 0; index < order.size(); ++index) order[index] = index;
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return order_values(list[a], list[b]) < 0; });
  std::vector<std::size_t> first;
  for (const std::size_t index : order) {
    if (first.empty() || !same_value(list[first.back()], list[index])) first.push_back(index);
  }
  std::sort(first.begin(), first.end());
  unique.reserve(first.size());
  for (const std::size_t index : first) unique.push_back(list[index]);
  return unique;
}

bool is_subset(const Value::List& a, const Value::List& b) {
  const Membership members(b);
  return std::all_of(a.begin(), a.end(), [&](const Value& value) { return members.contains(value); });
}

bool overlap(const Value::List& a, const Value::List& b) {
  const Membership members(b);
  return std::any_of(a.begin(), a.end(), [&](const Value& value) { return members.contains(value); });
}

bool same_set(const Value::List& a, const Value::List& b) {
  return is_subset(a, b) && is_subset(b, a);
}

std::optional<std::string_view> enum_member(std::string_view text) {
  const std::size_t dot = text.find('.');
  if (dot == 0 || dot == std::string_view::npos || dot + 1 == text.size()) return std::nullopt;
  if (text.front() < 'A' || text.front() > 'Z') return std::nullopt;
  const auto is_name = [](std::string_view name) {
    return std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    });
  };
  const std::string_view member = text.substr(dot + 1);
  if (!is_name(text.substr(0, dot)) || !is_name(member)) return std::nullopt;
  return member;
}

namespace {

enum class Wanted { all, members, strings };

Value::List module_parts(const Value& value, Wanted wanted) {
  Value::List parts;
  const auto take = [&](std::string_view text) {
    const auto member = enum_member(text);
    if (wanted == Wanted::all)
      parts.emplace_back(std::string(text));
    else if (member.has_value() == (wanted == Wanted::members))
      parts.emplace_back(std::string(member.value_or(text)));
  };
  if (value.kind() == Value::Kind::string) {
    for_parts(value.string(), ",", take);
  } else if (value.kind() == Value::Kind::list) {
    for (const Value& element : value.list()) {
      if (element.kind() == Value::Kind::string)
        take(element.string());
      else if (wanted == Wanted::all)
        parts.push_back(element);
    }
  }
  return unique_elements(parts);
}

}  // namespace

Value::List module_tokens(const Value& value) {
  return module_parts(value, Wanted::all);
}
Value::List module_members(const Value& value) {
  return module_parts(value, Wanted::members);
}
Value::List module_strings(const Value& value) {
  return module_parts(value, Wanted::strings);
}

Value::List split_parts(const Value& value, std::string_view separator) {
  Value::List parts;
  if (value.kind() == Value::Kind::string) {
    for_parts(value.string(), separator,
              [&](std::string_view part) { parts.emplace_back(std::string(without_blanks(part))); });
  } else if (value.kind() == Value::Kind::list) {
    parts = value.list();
  }
  return unique_elements(parts);
}

Value text_before(std::string_view text, std::string_view mark) {
  return Value(std::string(text.substr(0, mark.empty() ? std::string_view::npos : text.find(mark))));
}

Value text_after(std::string_view text, std::string_view mark) {
  const std::size_t at = mark.empty() ? std::string_view::npos : text.find(mark);
  return at == std::string_view::npos ? Value() : Value(std::string(text.substr(at + mark.size())));
}

std::int64_t count_text(std::string_view text, std::string_view part) {
  std::int64_t count = -1;
  for_parts(text, part, [&](std::string_view) { ++count; });
  return count;
}

Value::List text_characters(const Value& value) {
  Value::List characters;
  if (value.kind() != Value::Kind::string) return characters;
  std::string_view text = value.string();
  while (!text.empty()) {
    std::size_t size = 1;
    while (size < text.size() && (static_cast<unsigned char>(text[size]) & 0xC0U) == 0x80U) ++size;
    characters.emplace_back(std::string(text.substr(0, size)));
    text.remove_prefix(size);
  }
  return unique_elements(characters);
}

Value sum_elements(const Value& value) {
  if (value.is_none()) return Value(0);
  if (value.kind() != Value::Kind::list) return {};
  Value total(0);
  for (const Value& element : value.list()) {
    total = apply_arithmetic(ExprOp::add, total, element);
    if (total.is_none()) break;
  }
  return total;
}

Value multiply_elements(const Value& value) {
  if (value.is_none()) return Value(1);
  if (value.kind() != Value::Kind::list) return {};
  Value total(1);
  for (const Value& element : value.list()) {
    total = apply_arithmetic(ExprOp::multiply, total, element);
    if (total.is_none()) break;
  }
  return total;
}

Value integer_from(const Value& value) {
  if (value.kind() == Value::Kind::integer) return value;
  if (value.kind() != Value::Kind::string) return {};
  std::string_view text = without_blanks(value.string());
  if (text.starts_with('+')) {
    text.remove_prefix(1);
    if (text.starts_with('-')) return {};
  }
  std::int64_t integer = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), integer);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return Value(integer);
}

namespace {

std::vector<AllocatorOption> read_allocator(std::string_view text, std::vector<SyntaxProblem>& problems) {
  // Places in the text itself: who shows the problem knows where the text stands.
  return parse_allocator_conf(text, Span{0, 0, static_cast<std::uint32_t>(text.size())}, problems);
}

}  // namespace

Value allocator_value(std::string_view text, std::string_view option) {
  std::vector<SyntaxProblem> problems;
  const std::vector<AllocatorOption> options = read_allocator(text, problems);
  if (!problems.empty()) return {};
  Value found;
  for (const AllocatorOption& one : options) {
    if (one.name != option) continue;
    std::string written;
    for (const char c : text.substr(one.value_span.begin, one.value_span.end - one.value_span.begin)) {
      if (c != ' ') written += c;
    }
    found = Value(std::move(written));
  }
  return found;
}

Value allocator_problem(std::string_view text) {
  std::vector<SyntaxProblem> problems;
  read_allocator(text, problems);
  return problems.empty() ? Value() : Value(problems.front().message);
}

}  // namespace capstan
