// One concrete value of the rule language and what its operators make of concrete values
// (docs/rule-language.md). The encoding applies these case by case; the evaluator of compiler/ruleset has its
// own, and tests hold both together.
#pragma once

#include <string>
#include <vector>

#include "compiler/schema/version.h"
#include "grammar/rule/rule_syntax.h"
#include "grammar/source/value.h"

namespace capstan {

struct Scalar {
  enum class Tag : std::uint8_t { value, version, unknown };
  Tag tag = Tag::value;
  bool as_set = false;  ///< a list that is a set: order and repetition mean nothing
  Value value;
  Version version;

  static Scalar of(Value value) { return {Tag::value, false, std::move(value), {}}; }
  static Scalar none() { return of(Value()); }
  static Scalar unknown() { return {Tag::unknown, false, {}, {}}; }
  static Scalar of_version(const Version& version) { return {Tag::version, false, {}, version}; }
  bool is_unknown() const { return tag == Tag::unknown; }
  bool is_none() const { return tag == Tag::value && value.is_none(); }
  friend bool operator==(const Scalar&, const Scalar&) = default;
};

/// `=` of the language on two values: kinds must agree, integers and floats compare by value, a set compares
/// as a set.
bool rule_equal(const Scalar& a, const Scalar& b);
/// Distinct elements (by rule_equal), in order of first appearance. Anything but a list has none.
std::vector<Value> distinct_elements(const Value& value);
bool has_element(const std::vector<Value>& set, const Value& element);
/// Comparison and arithmetic on known values; `op` is one of equal ... greater_equal, add ... modulo.
Scalar apply_binary(ExprOp op, const Scalar& a, const Scalar& b);
Scalar apply_negate(const Scalar& a);
/// Functions whose result is no set; arguments known. Sets are passed as lists with `as_set`.
Scalar apply_function(const std::string& name, const std::vector<Scalar>& arguments);
/// Elements of tokens(x) and split(x, separator).
std::vector<Value> tokens_of(const Value& value);
std::vector<Value> parts_of(const Value& value, const std::string& separator);
/// `x is none|bool|int|float|string|list|table`.
bool is_kind(const Scalar& a, const std::string& word);
/// Value of an option in an allocator string, as PyTorch's parser reads it; none if absent.
Value allocator_option(const std::string& text, const std::string& option);

}  // namespace capstan
