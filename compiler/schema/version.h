// Versions of software components, ordered as Python's packaging does for the forms in use:
// 0.16.0rc0 < 0.16.0 < 0.16.1; 0.20.0.dev0 < 0.20.0; missing parts are zero (2.10 = 2.10.0).
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace capstan {

struct Version {
  std::int32_t major = 0, minor = 0, patch = 0;
  /// -4 dev, -3 alpha, -2 beta, -1 release candidate, 0 release; `stage_number` counts within the stage.
  std::int32_t stage = 0, stage_number = 0;
  friend auto operator<=>(const Version&, const Version&) = default;  // NOLINT(modernize-use-nullptr)
};

/// Accepts "2", "2.10", "0.16.0rc0", "2.9.0a0", "0.20.0.dev0", "2.6.0dev0", a leading "v", a trailing
/// "+local" (ignored). Parts above 9999 are refused.
std::optional<Version> parse_version(std::string_view text);
std::string to_text(const Version& version);
/// Order-preserving number of a version, for the solver: less in version order is less in number.
std::int64_t rank(const Version& version);

}  // namespace capstan
