#include "compiler/config/conform.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

#include "grammar/arguments/list_expression.h"

namespace capstan {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 10> kDtypeSynonyms = {{
    {"torch.bfloat16", "bf16"},
    {"bfloat16", "bf16"},
    {"torch.float16", "fp16"},
    {"float16", "fp16"},
    {"torch.half", "fp16"},
    {"half", "fp16"},
    {"torch.float32", "fp32"},
    {"float32", "fp32"},
    {"torch.float", "fp32"},
    {"torch.float64", "fp64"},
}};

bool is_legal(const std::string& text, const KeySpec& spec) {
  return spec.values.empty() || spec.values_are_open ||
         std::find(spec.values.begin(), spec.values.end(), text) != spec.values.end();
}

void integer_to_float(Value& value) {
  const std::int64_t number = value.integer();
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  if (-kExact <= number && number <= kExact) value = Value(static_cast<double>(number));
}

void rename_dtype(Value& value) {
  for (const auto& [synonym, name] : kDtypeSynonyms) {
    if (value.string() == synonym) {
      value = Value(std::string(name));
      return;
    }
  }
}

/// Source: Megatron-LM megatron/training/arguments.py moe_freq_type: a list expression, or an integer in a
/// string.
bool read_pattern(Value& value) {
  const std::string& text = value.string();
  if (const auto numbers = evaluate_list_expression(text)) {
    Value::List list;
    for (const std::int64_t number : *numbers) list.emplace_back(number);
    value = Value(std::move(list));
    return true;
  }
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return false;
  value = Value(number);
  return true;
}

/// TOML, YAML and Python can write it, but no key means it: whatever is computed from it is NaN as well, and
/// no check of the frameworks sees it, since all comparisons with it are false.
bool is_nan(const Value& value) {
  return value.kind() == Value::Kind::floating && std::isnan(value.floating());
}

bool means_none(const std::string& text) {
  return text == "none" || text == "None" || text == "null";
}

std::optional<Misfit> conform_element(Value& element, std::size_t index, const KeySpec& spec) {
  const TypeSet& type = spec.type;
  if (!type.list_any) {
    bool fits = false;
    switch (element.kind()) {
      case Value::Kind::boolean:
        fits = type.list_boolean;
        break;
      case Value::Kind::integer:
        fits = type.list_integer || type.list_floating;
        if (fits && !type.list_integer) integer_to_float(element);
        break;
      case Value::Kind::floating:
        fits = type.list_floating;
        break;
      case Value::Kind::string:
        fits = type.list_string;
        break;
      case Value::Kind::none:
      case Value::Kind::list:
      case Value::Kind::table:
        break;
    }
    if (!fits) return Misfit{true, element, index};
  }
  if (element.kind() == Value::Kind::string && !is_legal(element.string(), spec))
    return Misfit{false, element, index};
  if (is_nan(element)) return Misfit{false, element, index};
  return std::nullopt;
}

}  // namespace

std::optional<Misfit> conform(Value& value, const KeySpec& spec) {
  const TypeSet& type = spec.type;
  if (type.any) {
    if (is_nan(value)) return Misfit{false, value, std::nullopt};
    return std::nullopt;
  }
  const Misfit wrong_type{true, value, std::nullopt};
  switch (value.kind()) {
    case Value::Kind::none:
      return type.none ? std::nullopt : std::optional(wrong_type);
    case Value::Kind::boolean:
      return type.boolean ? std::nullopt : std::optional(wrong_type);
    case Value::Kind::integer:
      if (type.integer) return std::nullopt;
      if (!type.floating) return wrong_type;
      integer_to_float(value);
      return std::nullopt;
    case Value::Kind::floating:
      if (!type.floating) return wrong_type;
      if (is_nan(value)) return Misfit{false, value, std::nullopt};
      return std::nullopt;
    case Value::Kind::string: {
      if (type.string && type.dtype) rename_dtype(value);
      const bool named = type.string && std::find(spec.values.begin(), spec.values.end(), value.string()) !=
                                            spec.values.end();
      const bool closed_or_no_string =
          !type.string || (!spec.values.empty() && !spec.values_are_open) || type.dtype || type.pattern;
      if (type.none && !named && closed_or_no_string && means_none(value.string())) {
        value = Value();
        return std::nullopt;
      }
      if (!type.string) return wrong_type;
      if (type.pattern) return read_pattern(value) ? std::nullopt : std::optional(wrong_type);
      if (!is_legal(value.string(), spec)) return Misfit{false, value, std::nullopt};
      return std::nullopt;
    }
    case Value::Kind::list: {
      if (!type.list) return wrong_type;
      for (std::size_t index = 0; index < value.list().size(); ++index) {
        if (auto misfit = conform_element(value.list()[index], index, spec)) return misfit;
      }
      return std::nullopt;
    }
    case Value::Kind::table:
      return type.table ? std::nullopt : std::optional(wrong_type);
  }
  return wrong_type;
}

}  // namespace capstan
