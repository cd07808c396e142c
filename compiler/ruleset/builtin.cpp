#include <stdexcept>

#include "compiler/embed/embedded.h"
#include "compiler/ruleset/resolve.h"
#include "compiler/ruleset/rule_archive.h"
#include "compiler/ruleset/rule_set_binary.h"

namespace capstan {

std::vector<RuleFile> builtin_rule_files() {
  std::optional<std::vector<RuleFile>> files = decode_rule_archive(embedded_rules());
  if (!files) throw std::logic_error("the embedded rules are damaged");
  return std::move(*files);
}

const std::vector<std::string>& builtin_phases() {
  static const std::vector<std::string> phases = [] {
    const std::optional<TextPairs> pairs = decode_text_pairs(embedded_phases());
    if (!pairs) throw std::logic_error("the embedded phases are damaged");
    std::vector<std::string> names;
    for (const auto& [name, nothing] : *pairs) names.push_back(name);
    return names;
  }();
  return phases;
}

RuleSet load_builtin_rules() {
  std::optional<RuleSet> rules = decode_rule_set(embedded_rule_set());
  if (!rules) throw std::logic_error("the embedded rules are damaged");
  return std::move(*rules);
}

const RuleSet& builtin_rules() {
  static const RuleSet rules = load_builtin_rules();
  return rules;
}

std::string builtin_document(const std::string& rule_path) {
  const std::optional<TextPairs> pairs = decode_text_pairs(embedded_documents());
  if (!pairs) throw std::logic_error("the embedded documentation is damaged");
  for (const auto& [path, text] : *pairs) {
    if (path == rule_path) return text;
  }
  return {};
}

}  // namespace capstan
