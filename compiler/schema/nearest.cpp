#include <algorithm>
#include <cstddef>

#include "compiler/schema/schema.h"

namespace capstan {
namespace {

/// Edits (insert, delete, replace, swap of neighbours) from a to b; `limit + 1` when more than `limit` are
/// needed.
std::size_t edit_distance(std::string_view a, std::string_view b, std::size_t limit) {
  const std::size_t difference = a.size() > b.size() ? a.size() - b.size() : b.size() - a.size();
  if (difference > limit) return limit + 1;
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> before_previous(width), previous(width), current(width);
  for (std::size_t j = 0; j < width; ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    std::size_t row_minimum = i;
    for (std::size_t j = 1; j < width; ++j) {
      const std::size_t replace = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, replace});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        current[j] = std::min(current[j], before_previous[j - 2] + 1);
      }
      row_minimum = std::min(row_minimum, current[j]);
    }
    if (row_minimum > limit) return limit + 1;
    std::swap(before_previous, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

/// Letters of one case, without the marks between them.
std::string folded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '_' || c == '-' || c == ' ') continue;
    out += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

}  // namespace

std::string nearest(std::string_view wanted, const std::vector<std::string>& candidates) {
  // Longer texts come from no typing mistake; they would only cost time.
  if (wanted.size() > 200) return {};
  std::size_t best = std::max<std::size_t>(1, wanted.size() / 3);
  const std::string* found = nullptr;
  // What differs in case or in marks between words only is the same word, however short it is.
  const std::string wanted_word = folded(wanted);
  const bool is_exact = std::find(candidates.begin(), candidates.end(), wanted) != candidates.end();
  for (const std::string& candidate : candidates) {
    if (is_exact || wanted_word.empty()) break;
    if (candidate.size() <= 2 * wanted.size() + 1 && folded(candidate) == wanted_word) return candidate;
  }
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, candidate, best);
    if (distance < best || (distance == best && found == nullptr)) {
      best = distance;
      found = &candidate;
    }
  }
  return found == nullptr ? std::string() : *found;
}

}  // namespace capstan
