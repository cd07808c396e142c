#include "compiler/ruleset/message_fragment.h"

#include <algorithm>
#include <vector>

namespace capstan {

std::size_t fragment_of_pattern(std::string_view pattern, std::string_view text) {
  // At each place of the pattern, the most own characters with which the text read so far can end there.
  constexpr std::size_t kNever = std::string_view::npos;
  std::vector<std::size_t> best(pattern.size() + 1, 0), next;
  const auto better = [](std::size_t& place, std::size_t own) {
    if (place == kNever || place < own) place = own;
  };
  for (const char c : text) {
    next.assign(pattern.size() + 1, kNever);
    next[0] = 0;  // what stands before the message
    for (std::size_t at = 0; at < pattern.size(); ++at) {
      if (best[at] == kNever) continue;
      if (pattern[at] == '*') {
        better(next[at], best[at]);
        better(best[at + 1], best[at]);
      } else if (pattern[at] == c) {
        better(next[at + 1], best[at] + (c == ' ' ? 0 : 1));
      }
    }
    best.swap(next);
  }
  std::size_t most = 0;
  for (const std::size_t own : best) most = own == kNever ? most : std::max(most, own);
  return most;
}

}  // namespace capstan
