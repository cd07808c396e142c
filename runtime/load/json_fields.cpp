#include "runtime/load/json_fields.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace capstan::runtime {
namespace {

const nlohmann::json& json_value(const void* node) {
  return *static_cast<const nlohmann::json*>(node);
}
const nlohmann::json& nothing() {
  static const nlohmann::json null;
  return null;
}

}  // namespace

void JsonNode::fail(std::string text) const {
  if (!failed()) problem_->emplace(FieldProblem{path_, std::move(text)});
}

std::vector<std::string> JsonNode::names() const {
  std::vector<std::string> found;
  if (failed()) return found;
  if (!json_value(node_).is_object()) {
    fail(fmt::format("is {}, must be an object", json_value(node_).type_name()));
    return found;
  }
  for (const auto& [name, value] : json_value(node_).items()) found.push_back(name);
  return found;
}

void JsonNode::require_exactly(std::initializer_list<std::string_view> fields) const {
  const std::vector<std::string> found = names();
  if (failed()) return;
  for (const std::string_view wanted : fields) {
    if (std::find(found.begin(), found.end(), wanted) == found.end()) {
      return fail(fmt::format("lacks the field `{}`", wanted));
    }
  }
  for (const std::string& name : found) {
    if (std::find(fields.begin(), fields.end(), name) == fields.end()) {
      return fail(fmt::format("has the field `{}`, which the format does not know", name.substr(0, 64)));
    }
  }
}

JsonNode JsonNode::field(std::string_view name) const {
  const std::string path = path_.empty() ? std::string(name) : fmt::format("{}.{}", path_, name);
  if (!failed() && json_value(node_).is_object()) {
    const auto found = json_value(node_).find(name);
    if (found != json_value(node_).end()) return JsonNode(&*found, path, *problem_);
  }
  fail(fmt::format("lacks the field `{}`", name));
  return JsonNode(&nothing(), path, *problem_);
}

std::int64_t JsonNode::integer(std::int64_t low, std::int64_t high) const {
  if (failed()) return low;
  const nlohmann::json& value = json_value(node_);
  if (!value.is_number_integer()) {
    fail(fmt::format("is {}, must be an integer", value.type_name()));
    return low;
  }
  const bool too_large = value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(INT64_MAX);
  const std::int64_t number = too_large ? INT64_MAX : value.get<std::int64_t>();
  if (too_large || number < low || number > high) {
    fail(fmt::format("is {}, must be between {} and {}", value.dump(), low, high));
    return low;
  }
  return number;
}

std::uint64_t JsonNode::unsigned_integer(std::uint64_t high) const {
  if (failed()) return 0;
  const nlohmann::json& value = json_value(node_);
  if (!value.is_number_integer() || !value.is_number_unsigned()) {
    fail(value.is_number_integer() ? fmt::format("is {}, must not be negative", value.dump())
                                   : fmt::format("is {}, must be an integer", value.type_name()));
    return 0;
  }
  const std::uint64_t number = value.get<std::uint64_t>();
  if (number > high) {
    fail(fmt::format("is {}, must be at most {}", number, high));
    return 0;
  }
  return number;
}

double JsonNode::finite() const {
  if (failed()) return 0;
  const nlohmann::json& value = json_value(node_);
  if (!value.is_number()) {
    fail(fmt::format("is {}, must be a number", value.type_name()));
    return 0;
  }
  const double number = value.get<double>();
  if (!std::isfinite(number)) fail("is no finite number");
  return number;
}

bool JsonNode::boolean() const {
  if (failed()) return false;
  if (!json_value(node_).is_boolean()) {
    fail(fmt::format("is {}, must be a boolean", json_value(node_).type_name()));
    return false;
  }
  return json_value(node_).get<bool>();
}

std::string JsonNode::text(std::size_t max_bytes) const {
  if (failed()) return {};
  if (!json_value(node_).is_string()) {
    fail(fmt::format("is {}, must be a string", json_value(node_).type_name()));
    return {};
  }
  const auto& value = json_value(node_).get_ref<const std::string&>();
  if (value.size() > max_bytes) {
    fail(fmt::format("has {} bytes, must have at most {}", value.size(), max_bytes));
    return {};
  }
  return value;
}

std::size_t JsonNode::one_of(const std::vector<const char*>& options) const {
  const std::string value = text(256);
  if (failed()) return 0;
  for (std::size_t i = 0; i < options.size(); ++i) {
    if (value == options[i]) return i;
  }
  std::string list;
  for (const char* option : options) {
    if (list.size() > 200) {
      list += ", ...";
      break;
    }
    list += fmt::format("{}`{}`", list.empty() ? "" : ", ", option);
  }
  fail(fmt::format("is `{}`, must be one of {}", value, list));
  return 0;
}

void JsonNode::each(std::size_t max, const std::function<void(const JsonNode&)>& visit) const {
  if (failed()) return;
  const nlohmann::json& list = json_value(node_);
  if (!list.is_array()) return fail(fmt::format("is {}, must be a list", list.type_name()));
  if (list.size() > max) return fail(fmt::format("has {} elements, must have at most {}", list.size(), max));
  for (std::size_t i = 0; i < list.size() && !failed(); ++i) {
    visit(JsonNode(&list[i], fmt::format("{}[{}]", path_, i), *problem_));
  }
}

std::size_t JsonNode::size() const {
  return json_value(node_).size();
}
bool JsonNode::is_boolean() const {
  return json_value(node_).is_boolean();
}
bool JsonNode::is_integer() const {
  return json_value(node_).is_number_integer();
}
bool JsonNode::is_number() const {
  return json_value(node_).is_number();
}
bool JsonNode::is_text() const {
  return json_value(node_).is_string();
}

}  // namespace capstan::runtime
