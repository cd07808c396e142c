#include "compiler/ruleset/message.h"

#include <algorithm>
#include <map>

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

std::string shown(const Value& value) {
  return value.kind() == Value::Kind::string ? value.string() : to_text(value);
}

std::string joined(const std::vector<std::string>& parts, std::string_view last) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += i + 1 == parts.size() ? " " + std::string(last) + " " : ", ";
    out += parts[i];
  }
  return out;
}

std::string interpolate(std::string_view message, const Violation& violation, const Facts& facts,
                        std::vector<std::pair<std::string, Value>>* arguments) {
  std::string out;
  std::map<std::string, Value> used;
  walk_message(
      message, [&](std::string_view text) { out += text; },
      [&](std::string_view name) {
        FactId fact = 0;
        if (!facts.names->find(name, fact)) {
          out.append("{").append(name).append("}");
          return;
        }
        const auto judged = std::find_if(violation.values.begin(), violation.values.end(),
                                         [fact](const auto& entry) { return entry.first == fact; });
        const Fact& now = facts.values[fact];
        Value value = judged != violation.values.end() ? judged->second : now.value;
        if (now.is_version) value = Value(to_text(now.version));
        out += shown(value);
        used.insert_or_assign(std::string(name), std::move(value));
      });
  if (arguments != nullptr) arguments->assign(used.begin(), used.end());
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
