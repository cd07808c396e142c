#include "grammar/source/value.h"

#include <fmt/format.h>

#include <cmath>

namespace capstan {
namespace {

void append_string(const std::string& text, std::string& out) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\u{:04X}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

bool is_bare_key(const std::string& key) {
  if (key.empty()) return false;
  for (const char c : key) {
    const bool bare =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
    if (!bare) return false;
  }
  return true;
}

void append(const Value& value, std::string& out) {
  switch (value.kind()) {
    case Value::Kind::none:
      out += "none";
      return;
    case Value::Kind::boolean:
      out += value.boolean() ? "true" : "false";
      return;
    case Value::Kind::integer:
      out += std::to_string(value.integer());
      return;
    case Value::Kind::floating: {
      const double number = value.floating();
      if (std::isnan(number))
        out += "nan";
      else if (std::isinf(number))
        out += number > 0 ? "inf" : "-inf";
      else {
        std::string text = fmt::format("{}", number);
        if (text.find_first_of(".e") == std::string::npos) text += ".0";
        out += text;
      }
      return;
    }
    case Value::Kind::string:
      append_string(value.string(), out);
      return;
    case Value::Kind::list: {
      out += '[';
      bool first = true;
      for (const Value& item : value.list()) {
        if (!first) out += ", ";
        first = false;
        append(item, out);
      }
      out += ']';
      return;
    }
    case Value::Kind::table: {
      out += value.table().empty() ? "{" : "{ ";
      bool first = true;
      for (const auto& [key, item] : value.table()) {
        if (!first) out += ", ";
        first = false;
        if (is_bare_key(key))
          out += key;
        else
          append_string(key, out);
        out += " = ";
        append(item, out);
      }
      out += value.table().empty() ? "}" : " }";
      return;
    }
  }
}

}  // namespace

std::string to_text(const Value& value) {
  std::string out;
  append(value, out);
  return out;
}

const char* kind_name(Value::Kind kind) {
  switch (kind) {
    case Value::Kind::none:
      return "none";
    case Value::Kind::boolean:
      return "boolean";
    case Value::Kind::integer:
      return "integer";
    case Value::Kind::floating:
      return "float";
    case Value::Kind::string:
      return "string";
    case Value::Kind::list:
      return "list";
    case Value::Kind::table:
      return "table";
  }
  return "?";
}

}  // namespace capstan
