#include "grammar/yaml/yaml_scalars.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>

namespace capstan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_one_of(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

/// Nonnegative digits with a sign in front of them.
std::optional<Value> whole_number(std::string_view digits, int radix, bool negative) {
  const bool good = !digits.empty() && std::all_of(digits.begin(), digits.end(), [&](char c) {
    const int digit = is_digit(c)              ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                               : 99;
    return digit < radix;
  });
  if (!good) return std::nullopt;
  const std::string text = (negative ? "-" : "") + std::string(digits);
  std::int64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value, radix).ec == std::errc())
    return Value(value);
  if (radix == 10) {
    double real = 0;
    std::from_chars(text.data(), text.data() + text.size(), real);
    return Value(real);
  }
  double large = 0;
  for (const char c : digits) large = large * radix + (is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
  return Value(negative ? -large : large);
}

std::optional<Value> real_number(std::string text, bool negative) {
  if (text.starts_with('.')) text.insert(0, "0");
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end != text.data() + text.size() || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc::result_out_of_range) {  // `1e400` and `1e-400`, as strtod reads them
    const std::size_t exponent = text.find_first_of("eE");
    const bool tiny = exponent != std::string::npos && text.find('-', exponent) != std::string::npos;
    value = tiny ? 0.0 : HUGE_VAL;
  }
  return Value(negative ? -value : value);
}

std::optional<Value> infinite(std::string_view unsigned_text, std::string_view text) {
  if (is_one_of(unsigned_text, {".inf", ".Inf", ".INF"}))
    return Value(text.front() == '-' ? -HUGE_VAL : HUGE_VAL);
  if (is_one_of(text, {".nan", ".NaN", ".NAN"})) return Value(std::numeric_limits<double>::quiet_NaN());
  return std::nullopt;
}

std::string_view without_sign(std::string_view text) {
  return text.starts_with('-') || text.starts_with('+') ? text.substr(1) : text;
}

Value typed_by_core(std::string_view text) {
  if (is_one_of(text, {"true", "True", "TRUE"})) return Value(true);
  if (is_one_of(text, {"false", "False", "FALSE"})) return Value(false);
  const bool negative = text.front() == '-';
  const std::string_view rest = without_sign(text);
  if (const auto value = infinite(rest, text)) return *value;
  if (text.starts_with("0x")) {
    if (const auto value = whole_number(text.substr(2), 16, false)) return *value;
  }
  if (text.starts_with("0o")) {
    if (const auto value = whole_number(text.substr(2), 8, false)) return *value;
  }
  if (const auto value = whole_number(rest, 10, negative)) return *value;
  const bool number_like =
      !rest.empty() &&
      (is_digit(rest.front()) || (rest.front() == '.' && rest.size() > 1 && is_digit(rest[1]))) &&
      std::all_of(rest.begin(), rest.end(), [](char c) {
        return is_digit(c) || c == '.' || c == 'e' || c == 'E' || c == '+' || c == '-';
      });
  if (number_like) {
    if (const auto value = real_number(std::string(rest), negative)) return *value;
  }
  return Value(std::string(text));
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

bool are(std::string_view text, std::string_view allowed) {
  return std::all_of(text.begin(), text.end(),
                     [&](char c) { return allowed.find(c) != std::string_view::npos; });
}

constexpr std::string_view kDigits = "0123456789_";

/// `1:30:00`, to the base of 60; the last part may have a point.
std::optional<Value> sexagesimal(std::string_view rest, bool negative) {
  std::int64_t whole = 0;
  bool is_first = true;
  while (true) {
    const std::size_t colon = rest.find(':');
    const std::string_view part = rest.substr(0, colon);
    const std::size_t point = part.find('.');
    const std::string_view digits = part.substr(0, point);
    const bool has_point = point != std::string_view::npos;
    if (is_first &&
        (colon == std::string_view::npos || digits.empty() || !is_digit(digits.front()) || has_point))
      return std::nullopt;
    if (!are(digits, is_first ? kDigits : "0123456789")) return std::nullopt;
    if (!is_first && (digits.empty() || digits.size() > 2 || (digits.size() == 2 && digits.front() > '5')))
      return std::nullopt;
    std::int64_t value = 0;
    const std::string plain = without_underscores(digits);
    if (std::from_chars(plain.data(), plain.data() + plain.size(), value).ec != std::errc() ||
        whole > (std::numeric_limits<std::int64_t>::max() - value) / 60)
      return std::nullopt;
    whole = whole * 60 + value;
    is_first = false;
    if (colon == std::string_view::npos) {
      if (!has_point) return Value(negative ? -whole : whole);
      if (!are(part.substr(point + 1), kDigits)) return std::nullopt;
      const auto fraction = real_number("0." + without_underscores(part.substr(point + 1)) + "0", false);
      const double total = static_cast<double>(whole) + (fraction ? fraction->floating() : 0.0);
      return Value(negative ? -total : total);
    }
    if (has_point) return std::nullopt;
    rest.remove_prefix(colon + 1);
  }
}

/// What both loaders take for an integer.
std::optional<Value> python_integer(std::string_view text) {
  const bool negative = text.front() == '-';
  const std::string_view rest = without_sign(text);
  if (rest.empty() || !is_digit(rest.front())) return std::nullopt;
  if (rest.size() > 2 && rest.starts_with("0b") && are(rest.substr(2), "01_"))
    return whole_number(without_underscores(rest.substr(2)), 2, negative);
  if (rest.size() > 2 && rest.starts_with("0x") && are(rest.substr(2), "0123456789abcdefABCDEF_"))
    return whole_number(without_underscores(rest.substr(2)), 16, negative);
  if (rest.size() > 1 && rest.front() == '0' && are(rest, "01234567_"))
    return whole_number(without_underscores(rest), 8, negative);
  if (rest == "0" || (rest.front() != '0' && are(rest, kDigits)))
    return whole_number(without_underscores(rest), 10, negative);
  // No zero in front: what begins with one is text, unless it has a point.
  if (rest.front() != '0' && rest.find('.') == std::string_view::npos) return sexagesimal(rest, negative);
  return std::nullopt;
}

/// The parts of a decimal float; nothing for other texts.
struct Decimal {
  bool has_sign = false, has_whole = false, has_point = false, has_exponent = false, signed_exponent = false;
};
std::optional<Decimal> decimal_of(std::string_view text) {
  Decimal decimal;
  std::string_view rest = without_sign(text);
  decimal.has_sign = rest.size() != text.size();
  std::string_view body = rest;
  if (const std::size_t exponent = rest.find_first_of("eE"); exponent != std::string_view::npos) {
    body = rest.substr(0, exponent);
    const std::string_view power = rest.substr(exponent + 1), digits = without_sign(power);
    if (digits.empty() || !are(digits, "0123456789")) return std::nullopt;
    decimal.has_exponent = true;
    decimal.signed_exponent = digits.size() != power.size();
  }
  const std::size_t point = body.find('.');
  const std::string_view whole = body.substr(0, point);
  decimal.has_whole = !whole.empty();
  decimal.has_point = point != std::string_view::npos;
  if (decimal.has_whole && (!is_digit(whole.front()) || !are(whole, kDigits))) return std::nullopt;
  if (!decimal.has_point) return decimal.has_whole ? std::optional(decimal) : std::nullopt;
  const std::string_view part = body.substr(point + 1);
  if (!are(part, kDigits) ||
      (!decimal.has_whole && part.find_first_of("0123456789") == std::string_view::npos))
    return std::nullopt;
  return decimal;
}

Value typed_by_python(std::string_view text) {
  if (is_one_of(text, {"yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})) return Value(true);
  if (is_one_of(text, {"no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"}))
    return Value(false);
  const std::string_view rest = without_sign(text);
  if (const auto value = infinite(rest, text)) return *value;
  if (const auto value = python_integer(text)) return *value;
  const auto decimal = decimal_of(text);
  const bool floating = decimal && (decimal->has_point || decimal->has_exponent);
  const bool known =
      floating &&
      (decimal->has_whole || (!decimal->has_sign && (!decimal->has_exponent || decimal->signed_exponent)));
  if (known) {
    if (const auto value = real_number(without_underscores(rest), text.front() == '-')) return *value;
  }
  if (rest.find('.') != std::string_view::npos && rest.find(':') != std::string_view::npos) {
    if (const auto value = sexagesimal(rest, text.front() == '-')) return *value;
  }
  return Value(std::string(text));
}

}  // namespace

Value typed_yaml_scalar(std::string_view text, YamlScalars scalars) {
  if (is_one_of(text, {"", "~", "null", "Null", "NULL"})) return Value();
  return scalars == YamlScalars::core ? typed_by_core(text) : typed_by_python(text);
}

bool is_text_for_safe_load(std::string_view text) {
  if (text.empty()) return false;
  const auto decimal = decimal_of(text);
  if (!decimal || (!decimal->has_point && !decimal->has_exponent)) return false;
  if (decimal->has_exponent && (!decimal->has_point || !decimal->signed_exponent)) return true;
  return !decimal->has_whole && (decimal->has_sign || text[1] == '_');
}

}  // namespace capstan
