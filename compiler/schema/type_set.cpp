#include <array>
#include <cstddef>

#include "compiler/schema/schema.h"

namespace capstan {
namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// Alternatives of a union at bracket depth 0. False when brackets do not match.
bool split_union(std::string_view text, std::vector<std::string_view>& parts) {
  int depth = 0;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '<') ++depth;
    if (text[at] == '>' && --depth < 0) return false;
    if (text[at] == '|' && depth == 0) {
      parts.push_back(trim(text.substr(start, at - start)));
      start = at + 1;
    }
  }
  parts.push_back(trim(text.substr(start)));
  return depth == 0;
}

bool add_alternative(std::string_view text, TypeSet& type);

bool add_element_type(std::string_view notation, TypeSet& type) {
  const std::optional<TypeSet> element = parse_type(notation);
  if (!element) return false;
  type.list_boolean |= element->boolean;
  type.list_integer |= element->integer;
  type.list_floating |= element->floating;
  type.list_string |= element->string;
  // Elements of lists, tables and none are not told apart.
  type.list_any |= element->any || element->list || element->table || element->none;
  return true;
}

bool add_alternative(std::string_view text, TypeSet& type) {
  if (text.ends_with('?')) {
    type.none = true;
    text = trim(text.substr(0, text.size() - 1));
  }
  if (text == "none")
    type.none = true;
  else if (text == "bool")
    type.boolean = true;
  else if (text == "int")
    type.integer = true;
  else if (text == "float")
    type.floating = true;
  else if (text == "str")
    type.string = true;
  else if (text == "dtype")
    type.string = type.dtype = true;
  else if (text == "callable")
    type.string = type.callable = true;
  else if (text == "version")
    type.string = type.version = true;
  else if (text == "pattern")
    type.string = type.pattern = true;
  else if (text == "dict")
    type.table = true;
  else if (text == "any")
    type.any = true;
  else if (text == "list")
    type.list = type.list_any = true;
  else if (text.starts_with("list<") && text.ends_with('>')) {
    type.list = true;
    return add_element_type(text.substr(5, text.size() - 6), type);
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::optional<TypeSet> parse_type(std::string_view notation) {
  if (notation.size() > 200) return std::nullopt;  // bounds the recursion over list<list<...>>
  TypeSet type;
  std::vector<std::string_view> parts;
  if (!split_union(trim(notation), parts)) return std::nullopt;
  for (const std::string_view part : parts) {
    if (!add_alternative(part, type)) return std::nullopt;
  }
  return type;
}

}  // namespace capstan
