#include "compiler/config/exchange/interpolation.h"

namespace capstan {

std::optional<std::string> without_interpolation(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] == '\\') ++end;
    const std::size_t slashes = end - at;
    if (text.substr(end, 2) != "${") {  // backslashes in front of anything else are just that
      out.append(text.substr(at, slashes + 1));
      at = end + 1;
      continue;
    }
    if (slashes % 2 == 0) return std::nullopt;
    out.append(slashes / 2, '\\').append("${");
    at = end + 2;
  }
  return out;
}

std::string escape_interpolation(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    while (end < text.size() && text[end] == '\\') ++end;
    const bool opens = text.substr(end, 2) == "${";
    out.append(opens ? 2 * (end - at) + 1 : end - at, '\\');
    if (opens)
      out.append("${");
    else if (end < text.size())
      out += text[end];
    at = end + (opens ? 2 : 1);
  }
  return out;
}

}  // namespace capstan
