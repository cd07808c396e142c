#include "grammar/source/comma_words.h"

namespace capstan {

std::vector<std::string> comma_words(std::string_view text) {
  std::vector<std::string> words;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t first = part.find_first_not_of(" \t");
    if (first != std::string_view::npos)
      words.emplace_back(part.substr(first, part.find_last_not_of(" \t") - first + 1));
    if (comma == std::string_view::npos) return words;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace capstan
