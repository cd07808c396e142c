// A literal value as config files, overrides, rules and schemas write it. Plain data with value semantics.
// `none` is Python's None (TOML has no null: the string "none" stays a string; YAML null and Python None give
// none).
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace capstan {

class Value {
 public:
  using List = std::vector<Value>;
  using Table = std::vector<std::pair<std::string, Value>>;  ///< in written order
  enum class Kind { none, boolean, integer, floating, string, list, table };

  Value() = default;
  Value(bool value) : data_(value) {}
  Value(std::int64_t value) : data_(value) {}
  Value(int value) : data_(static_cast<std::int64_t>(value)) {}
  Value(double value) : data_(value) {}
  Value(std::string value) : data_(std::move(value)) {}
  Value(const char* value) : data_(std::string(value)) {}
  Value(List value) : data_(std::move(value)) {}
  Value(Table value) : data_(std::move(value)) {}

  Kind kind() const { return static_cast<Kind>(data_.index()); }
  bool is_none() const { return kind() == Kind::none; }
  bool is_number() const { return kind() == Kind::integer || kind() == Kind::floating; }

  // Accessors require the matching kind (checked by std::get).
  bool boolean() const { return std::get<bool>(data_); }
  std::int64_t integer() const { return std::get<std::int64_t>(data_); }
  double floating() const { return std::get<double>(data_); }
  const std::string& string() const { return std::get<std::string>(data_); }
  const List& list() const { return std::get<List>(data_); }
  List& list() { return std::get<List>(data_); }
  const Table& table() const { return std::get<Table>(data_); }
  Table& table() { return std::get<Table>(data_); }
  /// Integer or floating value as double; requires is_number().
  double number() const { return kind() == Kind::integer ? static_cast<double>(integer()) : floating(); }

  /// Structural equality; 1 and 1.0 differ (types matter to the framework).
  friend bool operator==(const Value&, const Value&) = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Table> data_;
};

/// The value as TOML would write it (`true`, `1.0`, `"bf16"`, `["attn", "mlp"]`); none is written `none`.
std::string to_text(const Value& value);
/// "boolean", "integer", "float", "string", "list", "table", "none".
const char* kind_name(Value::Kind kind);

}  // namespace capstan
