#include "compiler/schema/version.h"

#include <fmt/format.h>

namespace capstan {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool take_number(std::string_view text, std::size_t& at, std::int32_t& number) {
  const std::size_t start = at;
  std::int32_t value = 0;
  while (at < text.size() && is_digit(text[at])) {
    value = value * 10 + (text[at++] - '0');
    if (value > 9999) return false;
  }
  if (at == start) return false;
  number = value;
  return true;
}

}  // namespace

std::optional<Version> parse_version(std::string_view text) {
  if (!text.empty() && text.front() == 'v') text.remove_prefix(1);
  if (const auto local = text.find('+'); local != std::string_view::npos) text = text.substr(0, local);
  Version version;
  std::size_t at = 0;
  std::int32_t* const parts[] = {&version.major, &version.minor, &version.patch};
  for (int part = 0; part < 3; ++part) {
    if (part > 0) {
      if (at >= text.size() || text[at] != '.' || at + 1 >= text.size() || !is_digit(text[at + 1])) break;
      ++at;
    }
    if (!take_number(text, at, *parts[part])) return std::nullopt;
  }
  if (at == text.size()) return version;
  if (text[at] == '.') ++at;
  const std::string_view rest = text.substr(at);
  const auto stage = [&](std::string_view word, std::int32_t value) {
    if (!rest.starts_with(word)) return false;
    version.stage = value;
    at += word.size();
    return true;
  };
  if (!stage("dev", -4) && !stage("a", -3) && !stage("b", -2) && !stage("rc", -1)) return std::nullopt;
  if (at < text.size() && !take_number(text, at, version.stage_number)) return std::nullopt;
  if (at != text.size()) return std::nullopt;
  return version;
}

std::string to_text(const Version& version) {
  std::string text = fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
  switch (version.stage) {
    case -4:
      return text + fmt::format(".dev{}", version.stage_number);
    case -3:
      return text + fmt::format("a{}", version.stage_number);
    case -2:
      return text + fmt::format("b{}", version.stage_number);
    case -1:
      return text + fmt::format("rc{}", version.stage_number);
    default:
      return text;
  }
}

std::int64_t rank(const Version& version) {
  // Each part below 10^4, the stage shifted to 0..4: 9999'9999'9999'4'9999 < 2^63.
  std::int64_t rank = version.major;
  rank = rank * 10000 + version.minor;
  rank = rank * 10000 + version.patch;
  rank = rank * 5 + (version.stage + 4);
  return rank * 10000 + version.stage_number;
}

}  // namespace capstan
