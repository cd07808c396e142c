// The bytes of rules/ that the program carries: made at build time by capstan_embed, read at start. Always of
// the same build.
#pragma once

#include <string_view>

namespace capstan {

/// Keys and stacks, as encode_schema() wrote them.
std::string_view embedded_schema();
/// The text of rules/flags.toml.
std::string_view embedded_flags();
/// Rule files as parsed; below, their documentation and the phases: as compiler/ruleset/rule_archive.h wrote
/// them.
std::string_view embedded_rules();
/// The same rules resolved against the same schema, as encode_rule_set() wrote them.
std::string_view embedded_rule_set();
std::string_view embedded_documents();
std::string_view embedded_phases();

}  // namespace capstan
