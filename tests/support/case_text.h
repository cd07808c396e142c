// A case of the conformance tables -> the TOML file that a user would write for one stack.
#pragma once

#include <map>
#include <string>

#include <fmt/format.h>

#include "compiler/driver/conformance_table.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// The case as a user would write it. An explicit none that differs from the default is the string "none".
inline std::string case_text(const ConformanceCase& one, const Stack& stack, const SchemaView& schema) {
  std::map<std::string, std::string> sections;
  for (const auto& [path, setting] : one.config.settings) {
    const std::size_t dot = path.find('.');
    if (dot == std::string::npos) continue;
    Value value = setting.value;
    if (value.is_none()) {
      const KeyView view = schema.find(path);
      if (view.spec == nullptr || !view.spec->has_default || view.spec->default_value.is_none() ||
          !view.spec->type.none)
        continue;
      value = Value("none");
    }
    sections[path.substr(0, dot)] +=
        fmt::format("{} = {}\n", to_text(Value(path.substr(dot + 1))), to_text(value));
  }
  sections["target"] += fmt::format("stack = \"{}\"\n", stack.name);
  for (const auto& [component, version] : one.components)
    sections["target"] += fmt::format("{} = \"{}\"\n", component, to_text(version));
  std::string text;
  for (const auto& [section, keys] : sections) text += fmt::format("[{}]\n{}", section, keys);
  return text;
}

}  // namespace capstan
