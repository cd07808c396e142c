// Keys that a config leaves open without naming them. The top-level `open` says which: `true` for every
// section, or a list of sections. What stands open has some value that is not known here, so that neither a
// default nor a rule may count on it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/config/config.h"
#include "compiler/diagnostics/sink.h"
#include "compiler/schema/schema.h"

namespace capstan {

/// Adds the keys of the section (of all sections of the framework when it is empty) that are not set to
/// Config::open.
void open_unset_keys_of(std::string_view section, const SchemaView& view, Config& config);

/// Takes the top-level `open` out of Config::settings and does what it says. Reports sections that are not
/// known, and values of other types.
void take_open_sections(Config& config, const SchemaView& view, Sink& sink);

/// Sections of the release with keys that are open although they are not set, sorted.
struct OpenSections {
  std::vector<std::string> names;
  bool all = false;  ///< none is left out that could be open
};
OpenSections open_sections(const Config& config, const SchemaView& view);

}  // namespace capstan
