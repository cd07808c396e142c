// One concrete value as the encoding handles it, and the language's operators on such values. What an
// operator makes of values is defined in compiler/ruleset/rule_values.h; here it is put together for values
// that may be versions, sets or unknown.
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
/// Distinct elements, in order of first appearance. Anything but a list has none.
std::vector<Value> distinct_elements(const Value& value);
bool has_element(const std::vector<Value>& set, const Value& element);
/// Comparison and arithmetic on known values; `op` is one of equal ... greater_equal, add ... modulo.
Scalar apply_binary(ExprOp op, const Scalar& a, const Scalar& b);
Scalar apply_negate(const Scalar& a);
/// Functions whose result is no set; arguments known. Sets are passed as lists with `as_set`.
Scalar apply_function(const std::string& name, const std::vector<Scalar>& arguments);
/// tokens(x), members(x), strings(x) and split(x, separator) on one value.
bool gives_set(const std::string& function);
std::vector<Value> apply_set_function(const std::string& name, const Value& value,
                                      const std::string& separator);
/// `x is none|bool|int|float|string|list|table`.
bool is_kind(const Scalar& a, const std::string& word);

}  // namespace capstan
