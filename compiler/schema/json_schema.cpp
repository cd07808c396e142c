#include "compiler/schema/json_schema.h"

#include <nlohmann/json.hpp>

namespace capstan {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::none:
      return nullptr;
    case Value::Kind::boolean:
      return value.boolean();
    case Value::Kind::integer:
      return value.integer();
    case Value::Kind::floating:
      return value.floating();
    case Value::Kind::string:
      return value.string();
    case Value::Kind::list: {
      Json list = Json::array();
      for (const Value& item : value.list()) list.push_back(to_json(item));
      return list;
    }
    case Value::Kind::table: {
      Json table = Json::object();
      for (const auto& [key, item] : value.table()) table[key] = to_json(item);
      return table;
    }
  }
  return nullptr;
}

/// A string, with the legal ones when they are known; editors offer examples as they offer enum values.
Json string_schema(const KeySpec& spec) {
  Json schema = {{"type", "string"}};
  if (spec.values.empty()) return schema;
  schema[spec.values_are_open ? "examples" : "enum"] = spec.values;
  return schema;
}

Json list_schema(const KeySpec& spec) {
  const TypeSet& type = spec.type;
  Json schema = {{"type", "array"}};
  if (type.list_any) return schema;
  Json elements = Json::array();
  if (type.list_boolean) elements.push_back({{"type", "boolean"}});
  if (type.list_floating)
    elements.push_back({{"type", "number"}});
  else if (type.list_integer)
    elements.push_back({{"type", "integer"}});
  if (type.list_string) elements.push_back(string_schema(spec));
  if (elements.size() == 1)
    schema["items"] = elements.front();
  else if (!elements.empty())
    schema["items"] = {{"anyOf", elements}};
  return schema;
}

Json key_schema(const KeyInfo& key, const KeySpec& spec) {
  const TypeSet& type = spec.type;
  Json schema = Json::object();
  std::string description = key.doc;
  if (!key.unit.empty()) description += " (" + key.unit + ")";
  if (!spec.default_text.empty()) description += "; default " + spec.default_text;
  if (!description.empty()) schema["description"] = description;
  if (spec.has_default && !spec.default_value.is_none()) schema["default"] = to_json(spec.default_value);
  if (type.any) return schema;
  Json alternatives = Json::array();
  if (type.boolean) alternatives.push_back({{"type", "boolean"}});
  if (type.floating)
    alternatives.push_back({{"type", "number"}});
  else if (type.integer)
    alternatives.push_back({{"type", "integer"}});
  if (type.string) alternatives.push_back(string_schema(spec));
  if (type.list) alternatives.push_back(list_schema(spec));
  if (type.table) alternatives.push_back({{"type", "object"}});
  // "?" leaves a key open; "none" is how TOML writes Python's None where no string is legal.
  Json words = Json::array({"?"});
  if (type.none) words.insert(words.end(), {"none", "None", "null"});
  if (!type.string || !spec.values.empty()) alternatives.push_back({{"enum", words}});
  schema["anyOf"] = alternatives;
  return schema;
}

}  // namespace

std::string print_json_schema(const SchemaView& view) {
  Json sections = Json::object();
  sections["extends"] = {{"description", "files that this one builds on, relative to it; earlier ones first"},
                         {"anyOf", Json::array({Json{{"type", "string"}},
                                                Json{{"type", "array"}, {"items", {{"type", "string"}}}}})}};
  sections["open"] = {
      {"description", "sections whose keys, where not set, have values that are not known here; true: all"},
      {"anyOf",
       Json::array({Json{{"type", "boolean"}}, Json{{"type", "array"}, {"items", {{"type", "string"}}}}})}};
  const Schema& schema = view.schema();
  for (const std::size_t index : view.known_keys()) {
    const KeyInfo& key = schema.keys()[index];
    const std::string section(section_of(key.path));
    Json& table = sections[section];
    if (table.is_null())
      table = {{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
    const std::string name = key.path.substr(section.size() + 1);
    const Json entry = key_schema(key, *view.find(key.path).spec);
    if (name == "*") {
      table["additionalProperties"] = entry;
      continue;
    }
    table["properties"][name] = entry;
    // Components of the target may be written with underscores.
    if (section == "target" && name.find('-') != std::string::npos) {
      std::string other = name;
      for (char& c : other) c = c == '-' ? '_' : c;
      table["properties"][other] = entry;
    }
  }
  sections[std::string(kEnvironmentSection)]["type"] = "object";
  sections[std::string(kEnvironmentSection)]["additionalProperties"] = {
      {"type", Json::array({"string", "integer"})}};
  for (auto& [name, entry] : sections[std::string(kEnvironmentSection)]["properties"].items()) {
    entry.erase("anyOf");
    entry["type"] = Json::array({"string", "integer"});
  }
  const Json document = {{"$schema", "http://json-schema.org/draft-07/schema#"},
                         {"title", "training config for " + view.stack().name},
                         {"type", "object"},
                         {"additionalProperties", false},
                         {"properties", sections}};
  return document.dump(2) + '\n';
}

}  // namespace capstan
