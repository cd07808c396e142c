// A small JSON Schema checker for tests: the keywords that docs/*.schema.json use. An unknown keyword is an
// error, so that no schema says more than is checked.
#pragma once

#include <nlohmann/json.hpp>
#include <regex>
#include <string>
#include <vector>

namespace capstan::testing_support {

class JsonSchemaCheck {
 public:
  explicit JsonSchemaCheck(nlohmann::json schema) : root_(std::move(schema)) {}

  /// Violations as "path: what"; empty when the value conforms.
  std::vector<std::string> check(const nlohmann::json& value) {
    violations_.clear();
    visit(root_, value, "$");
    return violations_;
  }

 private:
  static bool has_type(const nlohmann::json& value, const std::string& type) {
    if (type == "object") return value.is_object();
    if (type == "array") return value.is_array();
    if (type == "string") return value.is_string();
    if (type == "boolean") return value.is_boolean();
    if (type == "null") return value.is_null();
    if (type == "integer") return value.is_number_integer();
    if (type == "number") return value.is_number();
    return false;
  }

  void fail(const std::string& path, const std::string& what) { violations_.push_back(path + ": " + what); }

  void visit(const nlohmann::json& schema, const nlohmann::json& value, const std::string& path) {
    if (schema.contains("$ref")) {
      const std::string name = schema["$ref"].get<std::string>().substr(std::string("#/$defs/").size());
      visit(root_.at("$defs").at(name), value, path);
    }
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "type") {
        bool matches = false;
        for (const auto& type : rule.is_array() ? rule : nlohmann::json::array({rule})) {
          matches = matches || has_type(value, type.get<std::string>());
        }
        if (!matches) fail(path, "wrong type");
      } else if (keyword == "const") {
        if (value != rule) fail(path, "not the constant");
      } else if (keyword == "enum") {
        bool matches = false;
        for (const auto& option : rule) matches = matches || option == value;
        if (!matches) fail(path, "none of the values");
      } else if (keyword == "minimum") {
        if (value.is_number() && value < rule) fail(path, "below the minimum");
      } else if (keyword == "pattern") {
        if (value.is_string() &&
            !std::regex_search(value.get<std::string>(), std::regex(rule.get<std::string>()))) {
          fail(path, "does not match the pattern");
        }
      } else if (keyword == "required") {
        for (const auto& name : rule) {
          if (value.is_object() && !value.contains(name.get<std::string>()))
            fail(path, "lacks " + name.get<std::string>());
        }
      } else if (keyword == "properties") {
        for (const auto& [name, child] : rule.items()) {
          if (value.is_object() && value.contains(name)) visit(child, value[name], path + "." + name);
        }
      } else if (keyword == "additionalProperties") {
        if (rule != false) fail(path, "additionalProperties is only checked as false");
        if (!value.is_object()) continue;
        for (const auto& [name, child] : value.items()) {
          if (!schema.contains("properties") || !schema["properties"].contains(name))
            fail(path, "unknown member " + name);
        }
      } else if (keyword == "items") {
        if (!value.is_array()) continue;
        for (std::size_t i = 0; i < value.size(); ++i)
          visit(rule, value[i], path + "[" + std::to_string(i) + "]");
      } else if (keyword != "$schema" && keyword != "$id" && keyword != "$ref" && keyword != "$defs" &&
                 keyword != "title" && keyword != "description") {
        fail(path, "the checker does not know the keyword " + keyword);
      }
    }
  }

  nlohmann::json root_;
  std::vector<std::string> violations_;
};

}  // namespace capstan::testing_support
