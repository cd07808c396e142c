// Rule syntax + schema -> RuleSet: names, types, enum values, versions, phases. Reports every problem with
// its place in the rule file and resolves what is sound; a rule with a problem is left out.
#pragma once

#include <string>
#include <vector>

#include "compiler/diagnostics/sink.h"
#include "compiler/ruleset/rule.h"
#include "grammar/rule/rule_syntax.h"
#include "grammar/source/source_file.h"

namespace capstan {

struct RuleFile {
  std::string path;  ///< "rules/graphs/CG004-graph-moe-and-router.rule"
  RuleFileSyntax syntax;
  bool of_user = false;  ///< from a user's folder: its codes start with X
};

RuleSet resolve(const std::vector<RuleFile>& files, const std::vector<std::string>& phases,
                const Schema& schema, Sink& sink);

/// The embedded rule files (parsed at build time), and a user's folder (parsed now; *.rule, recursively,
/// sorted by path).
std::vector<RuleFile> builtin_rule_files();
const std::vector<std::string>& builtin_phases();
/// The embedded rules, resolved against the embedded schema when the program was built; a copy of one's own,
/// and one made once per process.
RuleSet load_builtin_rules();
const RuleSet& builtin_rules();
/// Markdown of an embedded rule file by its path; empty if it has none.
std::string builtin_document(const std::string& rule_path);
std::vector<RuleFile> load_rule_folder(const std::string& folder, SourceMap& sources, Sink& sink);

/// Items that apply to the stack, in order. A range on a component that the stack does not name does not
/// apply.
ActiveRules select(const RuleSet& rules, const Stack& stack);

}  // namespace capstan
