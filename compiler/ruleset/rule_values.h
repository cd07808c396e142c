// What the operators and functions of the rule language make of known values (docs/rule-language.md):
// equality, order, arithmetic, membership, and the functions on strings and lists. Total: every input gives a
// value, none where the language says so. Lists may be long (a config is untrusted): nothing here is
// quadratic in their length.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "grammar/rule/rule_syntax.h"
#include "grammar/source/value.h"

namespace capstan {

/// `=` on values that are no sets: kinds must agree, integers and floats compare by value, lists in order.
bool same_value(const Value& a, const Value& b);
/// -1, 0, 1 for two numbers; nothing for other kinds and NaN.
std::optional<int> order_numbers(const Value& a, const Value& b);
/// + - * / // %; none for other kinds, division by zero and integers that overflow.
Value apply_arithmetic(ExprOp op, const Value& a, const Value& b);
Value negate_number(const Value& value);

/// Elements of a list as a set: each once (by same_value), in order of first appearance.
Value::List unique_elements(const Value::List& list);
/// Fast membership in one list; refers to the list, which must outlive it.
class Membership {
 public:
  explicit Membership(const Value::List& list);
  bool contains(const Value& value) const;

 private:
  const Value::List* list_;
  std::vector<const Value*> sorted_;  // for long lists
};
bool same_set(const Value::List& a, const Value::List& b);
bool is_subset(const Value::List& a, const Value::List& b);
bool overlap(const Value::List& a, const Value::List& b);

/// `CudaGraphScope.attn` -> `attn`; nothing when the text names no enum member (TYPE.member, TYPE
/// capitalised).
std::optional<std::string_view> enum_member(std::string_view text);
/// Sets: the tokens of a module list as written, the names of its enum members ("attn" of
/// "CudaGraphScope.attn"), and its plain strings. A string is split at commas, parts kept as written; none
/// and other kinds give the empty set.
Value::List module_tokens(const Value& value);
Value::List module_members(const Value& value);
Value::List module_strings(const Value& value);
/// Parts of a string, blanks trimmed; elements of a list.
Value::List split_parts(const Value& value, std::string_view separator);
/// The part of a text before and after the first `mark`; the whole of it and none where it has no such mark.
Value text_before(std::string_view text, std::string_view mark);
Value text_after(std::string_view text, std::string_view mark);
/// How often a text holds another, without overlaps; 0 for an empty one.
std::int64_t count_text(std::string_view text, std::string_view part);
/// The set of characters (of UTF-8) of a string; empty for anything else.
Value::List text_characters(const Value& value);
/// Sum of a list of numbers; 0 for none; none for anything else.
Value sum_elements(const Value& value);
/// Product of a list of numbers; 1 for none; none for anything else, and where integers overflow.
Value multiply_elements(const Value& value);
/// An integer from its decimal text; integers stay; else none.
Value integer_from(const Value& value);
/// Value of an option in an allocator string (`a:1,b:[2:3,4:5]`), as PyTorch reads it: blanks mean nothing,
/// options end at commas outside brackets, the last one of a name counts. None if absent.
Value allocator_value(std::string_view text, std::string_view option);
/// What PyTorch refuses about an allocator string; none when it takes it.
Value allocator_problem(std::string_view text);

}  // namespace capstan
