#include <stdexcept>

#include "compiler/embed/embedded.h"
#include "compiler/ruleset/resolve.h"
#include "compiler/ruleset/rule_archive.h"

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

const RuleSet& builtin_rules() {
  static const RuleSet rules = [] {
    Sink sink;
    RuleSet resolved = resolve(builtin_rule_files(), builtin_phases(), builtin_schema(), sink);
    // The build has resolved the same files against the same schema.
    if (sink.has_errors())
      throw std::logic_error("the embedded rules do not fit the embedded schema: " +
                             sink.diagnostics()[0].message);
    return resolved;
  }();
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
