#include "compiler/fixes/meant_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/ruleset/rule_values.h"
#include "compiler/schema/schema.h"
#include "grammar/source/comma_words.h"

namespace capstan {
namespace {

bool has(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

}  // namespace

std::optional<MeantWords> without_strange_words(const Value& list, const std::vector<std::string>& known) {
  if (list.kind() != Value::Kind::list || known.empty()) return std::nullopt;
  MeantWords left;
  Value::List kept;
  for (const Value& item : list.list()) {
    if (item.kind() != Value::Kind::string) return std::nullopt;
    const std::string& word = item.string();
    if (has(known, word) || enum_member(word)) {
      kept.push_back(item);
      continue;
    }
    const std::string said = fmt::format("leave `{}` out", word);
    if (left.title.find(said) == std::string::npos) left.title += (left.title.empty() ? "" : ", ") + said;
  }
  if (left.title.empty() || kept.empty()) return std::nullopt;
  left.value = Value(std::move(kept));
  return left;
}

std::optional<MeantWords> meant_words(const Value& value, const std::vector<std::string>& known,
                                      const std::string* only) {
  const bool is_list = value.kind() == Value::Kind::list;
  if (!is_list && value.kind() != Value::Kind::string) return std::nullopt;
  std::vector<std::string> words;
  if (is_list) {
    for (const Value& item : value.list()) {
      if (item.kind() != Value::Kind::string) return std::nullopt;
      words.push_back(item.string());
    }
  } else {
    words = comma_words(value.string());
  }
  MeantWords meant;
  std::vector<std::string> out;
  for (const std::string& word : words) {
    const bool asked = only == nullptr || word == *only;
    const std::string near =
        !asked || has(known, word) || enum_member(word) ? std::string() : nearest(word, known);
    if (near.empty()) {
      out.push_back(word);
      continue;
    }
    const bool there = has(words, near) || has(out, near);
    meant.title += meant.title.empty() ? "" : ", ";
    meant.title += there ? fmt::format("leave `{}` out beside `{}`", word, near)
                         : fmt::format("write `{}` in place of `{}`", near, word);
    if (!there) out.push_back(near);
  }
  if (meant.title.empty()) return std::nullopt;
  if (is_list) {
    Value::List list(out.begin(), out.end());
    meant.value = Value(std::move(list));
  } else {
    std::string joined;
    for (const std::string& word : out) joined += (joined.empty() ? "" : ",") + word;
    meant.value = Value(std::move(joined));
  }
  return meant;
}

}  // namespace capstan
