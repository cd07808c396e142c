#include "compiler/solve/message.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace capstan {

std::string shown(const Value& value) {
  return value.kind() == Value::Kind::string ? value.string() : to_text(value);
}

std::string joined(const std::vector<std::string>& parts, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? fmt::format(" {} ", last) : ", ";
    out += parts[i];
  }
  return out;
}

std::string interpolate(const std::string& text, const Violation& violation, const Facts& facts,
                        std::vector<std::pair<std::string, Value>>* arguments) {
  std::string out;
  std::map<std::string, Value> used;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t open = text.find('{', at);
    const std::size_t close = open == std::string::npos ? open : text.find('}', open);
    if (close == std::string::npos) {
      out += text.substr(at);
      break;
    }
    out += text.substr(at, open - at);
    const std::string name = text.substr(open + 1, close - open - 1);
    at = close + 1;
    FactId fact = 0;
    if (!facts.names->find(name, fact)) {
      out += "{" + name + "}";
      continue;
    }
    const auto judged = std::find_if(violation.values.begin(), violation.values.end(),
                                     [fact](const auto& entry) { return entry.first == fact; });
    const Fact& now = facts.values[fact];
    Value value = judged != violation.values.end() ? judged->second : now.value;
    if (now.is_version) value = Value(to_text(now.version));
    out += shown(value);
    used.insert_or_assign(name, std::move(value));
  }
  if (arguments != nullptr) arguments->assign(used.begin(), used.end());
  return out;
}

}  // namespace capstan
