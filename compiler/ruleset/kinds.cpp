#include "compiler/ruleset/kinds.h"

#include <algorithm>
#include <utility>

namespace capstan {
namespace {

using Words = std::vector<std::string>;

/// A kind without strings: no word can occur.
Kinds wordless(int bits) {
  Kinds kinds = of_bits(bits);
  kinds.words = std::make_shared<const Words>();
  return kinds;
}

}  // namespace

Kinds of_bits(int bits) {
  Kinds kinds;
  kinds.bits = static_cast<std::uint16_t>(bits);
  return kinds;
}

Kinds any_kinds() {
  Kinds kinds = of_bits(kKindAny & ~kKindVersion);
  kinds.elements = kKindAny & ~kKindVersion;
  return kinds;
}

Kinds kinds_of(const KeySpec& spec) {
  const TypeSet& type = spec.type;
  if (type.any) return any_kinds();
  Kinds kinds;
  const auto add = [](bool flag, int bit, std::uint16_t& bits) {
    if (flag) bits = static_cast<std::uint16_t>(bits | bit);
  };
  add(type.none, kKindNone, kinds.bits);
  add(type.boolean, kKindBoolean, kinds.bits);
  add(type.integer, kKindInteger, kinds.bits);
  add(type.floating, kKindNumber, kinds.bits);
  add(type.string, kKindString, kinds.bits);
  add(type.table, kKindTable, kinds.bits);
  add(type.list, kKindList, kinds.bits);
  add(type.list_boolean, kKindBoolean, kinds.elements);
  add(type.list_integer, kKindInteger, kinds.elements);
  add(type.list_floating, kKindNumber, kinds.elements);
  add(type.list_string, kKindString, kinds.elements);
  if (type.list_any) kinds.elements = kKindAny & ~kKindVersion;
  // A default may lie outside the declared type ("moe_router_dtype: str = None").
  if (spec.has_default) kinds = join(kinds, kinds_of(spec.default_value));
  kinds.words.reset();
  if (!spec.values.empty()) {
    kinds.open_words = spec.values_are_open;
    kinds.words = std::make_shared<const Words>(spec.values);
    if (spec.has_default) kinds.words = join(kinds, kinds_of(spec.default_value)).words;
  }
  return kinds;
}

Kinds kinds_of(const Value& literal) {
  switch (literal.kind()) {
    case Value::Kind::none:
      return wordless(kKindNone);
    case Value::Kind::boolean:
      return wordless(kKindBoolean);
    case Value::Kind::integer:
      return wordless(kKindInteger);
    case Value::Kind::floating:
      return wordless(kKindFloating);
    case Value::Kind::table:
      return of_bits(kKindTable);
    case Value::Kind::string: {
      Kinds kinds = of_bits(kKindString);
      kinds.words = std::make_shared<const Words>(Words{literal.string()});
      return kinds;
    }
    case Value::Kind::list: {
      Kinds kinds = of_bits(kKindList);
      Words words;
      for (const Value& element : literal.list()) {
        kinds.elements = static_cast<std::uint16_t>(kinds.elements | kinds_of(element).bits);
        if (element.kind() == Value::Kind::string) words.push_back(element.string());
      }
      kinds.words = std::make_shared<const Words>(std::move(words));
      return kinds;
    }
  }
  return any_kinds();
}

Kinds join(const Kinds& a, const Kinds& b) {
  Kinds kinds;
  kinds.bits = static_cast<std::uint16_t>(a.bits | b.bits);
  kinds.elements = static_cast<std::uint16_t>(a.elements | b.elements);
  kinds.open_words = a.open_words || b.open_words;
  if (a.words && b.words) {
    Words words = *a.words;
    for (const std::string& word : *b.words) {
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    kinds.words = std::make_shared<const Words>(std::move(words));
  }
  return kinds;
}

std::string describe(const Kinds& kinds) {
  static constexpr std::pair<int, const char*> kNames[] = {
      {kKindBoolean, "boolean"}, {kKindInteger, "integer"}, {kKindFloating, "float"},
      {kKindString, "string"},   {kKindList, "list"},       {kKindTable, "table"},
      {kKindVersion, "version"}, {kKindSet, "set"},         {kKindNone, "none"}};
  std::vector<const char*> names;
  for (const auto& [bit, name] : kNames) {
    if (kinds.has(bit)) names.push_back(name);
  }
  std::string text;
  for (std::size_t index = 0; index < names.size(); ++index) {
    if (index > 0) text += index + 1 == names.size() ? " or " : ", ";
    text += names[index];
  }
  return text.empty() ? "nothing" : text;
}

}  // namespace capstan
