// rules/keys/<section>.toml and rules/stacks.toml -> Schema. Used at build time for the embedded data, and by
// tests. Every problem is reported with its place in the file; what is sound is loaded all the same.
// docs/key-files.md describes the format.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct SchemaText {
  std::string name;  ///< "keys/model.toml" (a section) or "stacks.toml"; a path before these parts is ignored
  std::string text;
};

Schema load_schema(const std::vector<SchemaText>& texts, SourceMap& sources, Sink& sink);

/// The texts of a rules folder: its stacks.toml and keys/*.toml, sorted by name; missing ones are left out.
std::vector<SchemaText> read_schema_folder(const std::string& folder, Sink& sink);

}  // namespace capstan
