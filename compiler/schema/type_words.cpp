#include "compiler/schema/type_words.h"

#include <vector>

namespace capstan {
namespace {

std::string join(const std::vector<std::string>& words) {
  std::string text;
  for (std::size_t index = 0; index < words.size(); ++index) {
    if (index > 0) text += index + 1 == words.size() ? " or " : ", ";
    text += words[index];
  }
  return text;
}

}  // namespace

std::string type_words(const TypeSet& type) {
  if (type.any) return "any value";
  std::vector<std::string> words;
  if (type.boolean) words.push_back("a boolean");
  if (type.floating)
    words.push_back("a number");
  else if (type.integer)
    words.push_back("an integer");
  if (type.string) {
    words.push_back(type.version   ? "a version such as \"2.10\""
                    : type.pattern ? "a pattern such as \"[0]*3+[1]*58\""
                                   : "a string");
  }
  if (type.list) {
    std::vector<std::string> elements;
    if (type.list_boolean) elements.push_back("booleans");
    if (type.list_floating)
      elements.push_back("numbers");
    else if (type.list_integer)
      elements.push_back("integers");
    if (type.list_string) elements.push_back("strings");
    words.push_back(type.list_any || elements.empty() ? "a list" : "a list of " + join(elements));
  }
  if (type.table) words.push_back("a table");
  if (type.none) words.push_back("none");
  return join(words);
}

}  // namespace capstan
