#include "compiler/config/exchange/say_argument.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/config/exchange/shell_quoted.h"

namespace capstan {
namespace {

/// A word as a shell reads it back unchanged.
std::string shell_word(const std::string& text) {
  const bool plain = !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./:,=+@%").find(c) != std::string_view::npos;
  });
  return plain ? text : shell_quoted(text);
}

bool write_value(FlagValue kind, const Value& value, std::string& text) {
  switch (value.kind()) {
    case Value::Kind::string:
      if (kind != FlagValue::string && kind != FlagValue::any) return false;
      text += " " + shell_word(value.string());
      return true;
    case Value::Kind::integer:
      if (kind == FlagValue::string || kind == FlagValue::boolean) return false;
      text += " " + std::to_string(value.integer());
      return true;
    case Value::Kind::floating:
      if (kind == FlagValue::integer && value.floating() == std::floor(value.floating()) &&
          std::fabs(value.floating()) < 1e15) {
        text += fmt::format(" {:.0f}", value.floating());
        return true;
      }
      if (kind != FlagValue::floating && kind != FlagValue::any) return false;
      text += " " + to_text(value);
      return true;
    case Value::Kind::boolean:
      if (kind != FlagValue::boolean) return false;
      text += value.boolean() ? " true" : " false";
      return true;
    default:
      return false;
  }
}

/// A list over the layers, equal neighbours together: `([0]*3+[1]*58)`.
bool write_pattern(const Value& value, std::string& text) {
  const Value::List& list = value.list();
  if (list.empty()) return false;
  std::string runs;
  for (std::size_t at = 0; at < list.size();) {
    if (list[at].kind() != Value::Kind::integer) return false;
    std::size_t end = at;
    while (end < list.size() && list[end] == list[at]) ++end;
    if (list[at].integer() < 0) return false;  // the framework refuses other characters than digits
    runs += fmt::format("{}[{}]*{}", runs.empty() ? "" : "+", list[at].integer(), end - at);
    at = end;
  }
  text += " " + shell_word("(" + runs + ")");
  return true;
}

/// `(128,0)`: in parentheses, so that a negative number does not look like an argument.
bool write_tuple(const Value& value, std::string& text) {
  std::string numbers;
  for (const Value& item : value.list()) {
    if (item.kind() != Value::Kind::integer) return false;
    numbers += (numbers.empty() ? "" : ",") + std::to_string(item.integer());
  }
  text += " " + shell_word("(" + numbers + ")");
  return !numbers.empty();
}

bool write_values(const Flag& flag, const Value& value, std::string& text) {
  if (value.kind() == Value::Kind::list) {
    if (takes_pattern(flag)) return write_pattern(value, text);
    if (takes_tuple(flag)) return write_tuple(value, text);
    if (!flag.is_list || (flag.filled && value.list().empty())) return false;
    if (flag.single && value.list().size() == 1) return false;  // would come back as one value
    for (const Value& item : value.list()) {
      if (!write_value(flag.takes, item, text)) return false;
      // A word of a list that begins with dashes would be read as an argument.
      if (item.kind() == Value::Kind::string && item.string().starts_with("--")) return false;
    }
    return true;
  }
  if (flag.is_list && !flag.single) return false;
  if (value.kind() == Value::Kind::string && value.string().starts_with("--")) {
    text += "=" + shell_word(value.string());
    return true;
  }
  return write_value(flag.takes, value, text);
}

}  // namespace

bool takes_tuple(const Flag& flag) {
  return flag.name == "--window-size";
}

bool takes_pattern(const Flag& flag) {
  return flag.takes == FlagValue::any && flag.name.ends_with("-freq");
}

std::optional<std::string> flag_with_value(const Flag& flag, const Value& value) {
  std::string text = flag.name;
  if (!write_values(flag, value, text)) return std::nullopt;
  return text;
}

std::optional<std::string> say_argument(std::string_view path, const Value& value) {
  std::optional<std::string> best;
  std::size_t fewest = 0;  // keys that come with it
  for (const Flag& flag : builtin_flag_table().flags) {
    if (!flag.irrelevant.empty() || flag.until || !flag.name.starts_with("--")) continue;
    const std::size_t width = flag.keys.size() + flag.sets.size();
    if (best && width >= fewest) continue;
    std::optional<std::string> said;
    if (flag.takes == FlagValue::none) {
      for (const auto& [key, set] : flag.sets) {
        if (key == path && set == value) said = flag.name;
      }
    } else if (std::find(flag.keys.begin(), flag.keys.end(), path) != flag.keys.end()) {
      said = flag_with_value(flag, value);
    }
    if (!said) continue;
    best = said;
    fewest = width;
  }
  return best;
}

}  // namespace capstan
