#include "compiler/driver/command_rules.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iterator>

#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/command_rules_parts.h"
#include "compiler/driver/usage_error.h"

namespace capstan {

LoadedRules::LoadedRules(const std::vector<std::string>& folders) {
  Sink sink;
  std::vector<RuleFile> files = builtin_rule_files();
  for (const std::string& folder : folders) {
    std::vector<RuleFile> more = load_rule_folder(folder, sources, sink);
    files.insert(files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  rules = resolve(files, builtin_phases(), builtin_schema(), sink);
  if (sink.diagnostics().empty()) return;
  const bool failed = sink.has_errors();
  std::fputs(render_text(sink.take(), sources, {}, {}).c_str(), stderr);
  if (failed) throw UsageError("the rules cannot be used");
}

void add_rules_command(CLI::App& program, int& exit_code) {
  CLI::App* rules =
      program.add_subcommand("rules", "the rule set: list, show, check, compare with the real framework");
  rules->require_subcommand(1);
  add_conformance_command(*rules, exit_code);
}

}  // namespace capstan
