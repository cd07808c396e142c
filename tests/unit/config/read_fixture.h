// A text read into a config for one stack, for tests of readers and writers: values, places and findings.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>

#include "compiler/config/exchange/read_config.h"

namespace capstan {

inline const Stack& stack_of(const char* name) {
  const Stack* stack = builtin_schema().find_stack(name);
  if (stack == nullptr) throw std::out_of_range(name);
  return *stack;
}

/// Views are made once: a test reads thousands of texts.
inline const SchemaView& stack_view(const std::string& stack) {
  static std::map<std::string, std::unique_ptr<SchemaView>> views;
  std::unique_ptr<SchemaView>& view = views[stack];
  if (!view) view = std::make_unique<SchemaView>(builtin_schema(), stack_of(stack.c_str()));
  return *view;
}

struct Read {
  SourceMap sources;
  Sink sink;
  ReadRecord record;
  ConfigFormat format;
  const SchemaView& view;
  Config config;
  bool good = false;

  Read(std::string name, std::string text, const char* stack, std::optional<ConfigFormat> forced = {})
      : view(stack_view(stack)) {
    const SourceId id = sources.add(std::move(name), std::move(text), SourceKind::file);
    format = forced ? *forced : detect_format(sources[id].name(), sources[id].bytes());
    const auto layers = read_config(id, format, view, sources, disk_reader(), sink, record);
    good = layers.has_value();
    if (layers) config = compose(*layers, sink);
  }
  std::string value(const char* path) const {
    const Setting* setting = config.find(path);
    return setting == nullptr ? "absent" : to_text(setting->value);
  }
  std::string place(const char* path) const {
    const Setting* setting = config.find(path);
    return setting == nullptr ? "absent"
                              : std::string(sources.text(setting->origin.key)) + "|" +
                                    std::string(sources.text(setting->origin.value));
  }
  std::string findings() const {
    std::string out;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      out += diagnostic.code + " `" +
             (diagnostic.labels.empty() ? "" : std::string(sources.text(diagnostic.labels[0].span))) + "` ";
    }
    return out;
  }
};

}  // namespace capstan
