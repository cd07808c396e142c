// Configs from texts in memory, for tests.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "compiler/config/bind.h"
#include "compiler/config/compose.h"
#include "compiler/config/override_layer.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan::test {

struct MemoryReader : FileReader {
  std::map<std::string, std::string> files;
  std::optional<std::string> read(const std::string& path, ReadFailure& failure) const override {
    const auto found = files.find(path);
    if (found != files.end()) return found->second;
    failure.reason = "no such file";
    return std::nullopt;
  }
};

struct Composed {
  SourceMap sources;
  Sink sink;
  std::optional<Config> config;
  std::string messages() const {
    std::string text;
    for (const Diagnostic& diagnostic : sink.diagnostics())
      text += diagnostic.code + " " + diagnostic.message + "\n";
    return text;
  }
};

/// Composes "a.toml" of `files` with `--set` arguments.
inline void compose_text(Composed& result, const MemoryReader& reader,
                         const std::vector<std::string>& overrides = {}) {
  const SourceId file = result.sources.add("a.toml", reader.files.at("a.toml"), SourceKind::file);
  auto layers = load_layers(file, result.sources, reader, result.sink);
  if (!layers) return;
  for (const std::string& argument : overrides) {
    const SourceId source = result.sources.add("--set", argument, SourceKind::override_argument);
    if (auto layer = read_override_layer(source, result.sources, result.sink))
      layers->push_back(std::move(*layer));
  }
  result.config = compose(*layers, result.sink);
}

inline void compose_text(Composed& result, const std::string& text,
                         const std::vector<std::string>& overrides = {}) {
  MemoryReader reader;
  reader.files["a.toml"] = text;
  compose_text(result, reader, overrides);
}

}  // namespace capstan::test
