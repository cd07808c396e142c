#include "compiler/config/release_gap.h"

#include <algorithm>
#include <string_view>

#include <fmt/format.h>

namespace capstan {

std::string release_gap(const std::vector<KeyRange>& ranges, const Stack& stack) {
  // The component that comes nearest: one whose range begins later, or ended earlier, than the stack's
  // version.
  const KeyRange* later = nullptr;
  const KeyRange* ended = nullptr;
  std::vector<std::string_view> others;
  for (const KeyRange& range : ranges) {
    const Version* version = stack.version_of(range.component);
    if (version == nullptr) {
      if (std::find(others.begin(), others.end(), range.component) == others.end())
        others.push_back(range.component);
    } else if (range.until && *range.until <= *version) {
      if (ended == nullptr || *ended->until < *range.until) ended = &range;
    } else if (range.since && *version < *range.since) {
      if (later == nullptr || *range.since < *later->since) later = &range;
    }
  }
  if (ended != nullptr && later == nullptr) {
    return fmt::format("was removed in {} {}; {} has {}", ended->component, to_text(*ended->until),
                       stack.name, to_text(*stack.version_of(ended->component)));
  }
  if (later != nullptr) {
    return fmt::format("does not exist before {} {}; {} has {}", later->component, to_text(*later->since),
                       stack.name, to_text(*stack.version_of(later->component)));
  }
  std::string names;
  for (const std::string_view other : others) names += (names.empty() ? "" : " and ") + std::string(other);
  return fmt::format("belongs to {}, which {} does not use", names, stack.name);
}

}  // namespace capstan
