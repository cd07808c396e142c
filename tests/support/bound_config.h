// A TOML text as commands see it: composed, bound, on a stack. For tests of what comes after binding.
#pragma once

#include <memory>
#include <string>

#include "compiler/config/bind.h"
#include "compiler/config/compose.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct BoundConfig {
  SourceMap sources;
  Sink sink;  ///< problems of reading and binding
  Config config;
  Stack stack;
  std::unique_ptr<SchemaView> schema;
};

/// `name` is the file's name; nothing is read from disk but what `extends` names.
inline std::unique_ptr<BoundConfig> bind_text(const std::string& text, const std::string& stack,
                                              const std::string& name = "test.toml") {
  auto bound = std::make_unique<BoundConfig>();
  const SourceId file = bound->sources.add(name, text, SourceKind::file);
  const auto layers = load_layers(file, bound->sources, disk_reader(), bound->sink);
  if (layers) bound->config = compose(*layers, bound->sink);
  if (const auto choice = choose_stack(bound->config, builtin_schema(), stack, bound->sink))
    bound->stack = choice->stack;
  bound->schema = std::make_unique<SchemaView>(builtin_schema(), bound->stack);
  bind(bound->config, *bound->schema, bound->sink);
  return bound;
}

}  // namespace capstan
