#include "compiler/ruleset/message.h"

#include <algorithm>

namespace capstan {
namespace {

bool is_name(std::string_view text) {
  if (text.find('.') == std::string_view::npos || text.front() == '.' || text.back() == '.') return false;
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
  });
}

/// Gives the message in pieces: text, and names of holes.
template <typename Text, typename Hole>
void walk_message(std::string_view message, const Text& text, const Hole& hole) {
  while (!message.empty()) {
    const std::size_t open = message.find('{');
    text(message.substr(0, open));
    if (open == std::string_view::npos) return;
    message.remove_prefix(open);
    const std::size_t close = message.find('}');
    const std::string_view inside =
        close == std::string_view::npos ? std::string_view() : message.substr(1, close - 1);
    if (!inside.empty() && is_name(inside)) {
      hole(inside);
      message.remove_prefix(close + 1);
    } else {
      text(message.substr(0, 1));
      message.remove_prefix(1);
    }
  }
}

}  // namespace

std::vector<std::string> message_holes(std::string_view message) {
  std::vector<std::string> holes;
  walk_message(
      message, [](std::string_view) {}, [&](std::string_view name) { holes.emplace_back(name); });
  return holes;
}

std::string interpolate(std::string_view message, const Violation& violation, const FactNames& names) {
  std::string out;
  walk_message(
      message, [&](std::string_view text) { out += text; },
      [&](std::string_view name) {
        const auto found = std::find_if(violation.values.begin(), violation.values.end(),
                                        [&](const auto& value) { return names.name(value.first) == name; });
        out += found == violation.values.end() ? "unknown" : to_text(found->second);
      });
  return out;
}

bool matches_pattern(std::string_view pattern, std::string_view text) {
  // Greedy with one point to go back to: linear for each star.
  std::size_t at = 0, from = 0, star = std::string_view::npos, resume = 0;
  while (at < text.size()) {
    if (from < pattern.size() && pattern[from] == '*') {
      star = from++;
      resume = at;
    } else if (from < pattern.size() && pattern[from] == text[at]) {
      ++from;
      ++at;
    } else if (star != std::string_view::npos) {
      from = star + 1;
      at = ++resume;
    } else {
      return false;
    }
  }
  while (from < pattern.size() && pattern[from] == '*') ++from;
  return from == pattern.size();
}

}  // namespace capstan
