// The bytes in which the program carries its rule files: paths with parsed syntax, paths with documentation,
// phases. Written at build time; reader and writer are always of the same build.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compiler/ruleset/resolve.h"

namespace capstan {

std::string encode_rule_archive(const std::vector<RuleFile>& files);
/// Nothing if the bytes are malformed.
std::optional<std::vector<RuleFile>> decode_rule_archive(std::string_view bytes);

/// Pairs of texts (path and documentation), or single texts (phases) with empty second parts.
using TextPairs = std::vector<std::pair<std::string, std::string>>;
std::string encode_text_pairs(const TextPairs& pairs);
std::optional<TextPairs> decode_text_pairs(std::string_view bytes);

}  // namespace capstan
