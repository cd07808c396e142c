#include "compiler/driver/command_rules.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>

#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/command_rules_parts.h"
#include "compiler/driver/distinct_paths.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/report_options.h"
#include "compiler/driver/rule_description.h"
#include "compiler/driver/usage_error.h"
#include "compiler/ruleset/load_folder.h"
#include "grammar/rule/rule_printer.h"

namespace capstan {
namespace {

struct ListOptions {
  std::string stack, family, kind;
  std::string format = "text";
  std::vector<std::string> rule_folders;
};

struct ShowOptions {
  std::string code;
  std::vector<std::string> rule_folders;
};

struct CheckOptionsOfRules {
  std::vector<std::string> folders;
  ReportOptions report;
};

std::vector<RuleFile> read_rule_files(const std::vector<std::string>& folders, SourceMap& sources,
                                      Sink& sink) {
  std::vector<RuleFile> files = builtin_rule_files();
  for (const std::string& folder : distinct_paths(folders)) {
    std::vector<RuleFile> more = load_rule_folder(folder, sources, sink);
    files.insert(files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  return files;
}

void list_rules(const ListOptions& options) {
  const LoadedRules loaded(with_project_rules(options.rule_folders));
  std::vector<RuleGroup> groups = group_rules(loaded.rules);
  if (!options.stack.empty() && builtin_schema().find_stack(options.stack) == nullptr) {
    throw UsageError(fmt::format("there is no stack `{}`", options.stack));
  }
  if (!options.family.empty() && std::none_of(groups.begin(), groups.end(), [&](const RuleGroup& group) {
        return family_of(group.first()) == options.family ||
               group.code.substr(0, group.code.size() - 3) == options.family;
      })) {
    throw UsageError(fmt::format("no rule is of family `{}`", options.family));
  }
  std::erase_if(groups, [&](const RuleGroup& group) {
    const RuleItem& first = group.first();
    const std::vector<std::string> stacks =
        options.stack.empty() ? std::vector<std::string>() : stacks_of(group, builtin_schema());
    if (!options.stack.empty() && std::find(stacks.begin(), stacks.end(), options.stack) == stacks.end())
      return true;
    if (!options.kind.empty() && kind_of(first) != options.kind) return true;
    return !options.family.empty() && family_of(first) != options.family &&
           group.code.substr(0, group.code.size() - 3) != options.family;
  });
  if (options.format == "json")
    return fmt::print("{}", rules_to_json(groups, {}, loaded.rules, builtin_schema()));
  std::string out;
  for (const RuleGroup& group : groups) {
    const RuleItem& first = group.first();
    out += fmt::format("{:<6} {:<8} {:<8} {:<19} {}\n", group.code, kind_of(first),
                       severity_name(first.severity), enforcer_name(first.enforcer), first.name);
  }
  out += fmt::format("{} rule{}\n", groups.size(), groups.size() == 1 ? "" : "s");
  fmt::print("{}", out);
}

void show_rule(const ShowOptions& options) {
  SourceMap sources;
  Sink sink;
  const std::vector<RuleFile> files =
      read_rule_files(with_project_rules(options.rule_folders), sources, sink);
  std::string out;
  for (const RuleFile& file : files) {
    RuleFileSyntax shown;
    const auto is_wanted = [&](const auto& item) {
      return item.code.text == options.code || item.name.text == options.code;
    };
    std::copy_if(file.syntax.rules.begin(), file.syntax.rules.end(), std::back_inserter(shown.rules),
                 is_wanted);
    std::copy_if(file.syntax.rewrites.begin(), file.syntax.rewrites.end(), std::back_inserter(shown.rewrites),
                 is_wanted);
    std::copy_if(file.syntax.defines.begin(), file.syntax.defines.end(), std::back_inserter(shown.defines),
                 [&](const DefineSyntax& define) { return define.name.text == options.code; });
    const std::string text = print(shown);
    if (!text.empty()) out += fmt::format("# {}\n{}", file.path, text);
  }
  if (sink.has_errors()) {
    std::fputs(render_text(sink.take(), sources, {}, {}).c_str(), stderr);
    throw UsageError("the rules cannot be used");
  }
  if (out.empty()) throw UsageError(fmt::format("there is no rule or fact `{}`", options.code));
  fmt::print("{}", out);
}

int check_rules(const CheckOptionsOfRules& options) {
  SourceMap sources;
  Sink sink;
  std::vector<RuleFile> files = builtin_rule_files();
  for (const std::string& folder : distinct_paths(options.folders)) {
    std::vector<RuleFile> more = load_rule_folder(folder, sources, sink);
    load_rule_documents(folder, more, sink);
    files.insert(files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  }
  resolve(files, builtin_phases(), builtin_schema(), sink);
  std::vector<Diagnostic> found = sink.take();
  sort_for_output(found);
  return report_findings(found, sources, {}, options.report);
}

}  // namespace

std::vector<std::string> with_project_rules(const std::vector<std::string>& folders) {
  ConfigOptions options;
  options.rule_folders = folders;
  return with_project(std::move(options), "-").rule_folders;
}

LoadedRules::LoadedRules(const std::vector<std::string>& folders) {
  Sink sink;
  rules = resolve(read_rule_files(folders, sources, sink), builtin_phases(), builtin_schema(), sink);
  if (sink.diagnostics().empty()) return;
  const bool failed = sink.has_errors();
  std::fputs(render_text(sink.take(), sources, {}, {}).c_str(), stderr);
  if (failed) throw UsageError("the rules cannot be used");
}

void add_rules_command(CLI::App& program, int& exit_code) {
  CLI::App* rules =
      program.add_subcommand("rules", "the rule set: list, show, check, compare with the real framework");
  rules->require_subcommand(1);

  auto list_options = std::make_shared<ListOptions>();
  CLI::App* list = rules->add_subcommand("list", "all rules, one a line");
  list->add_option("--stack", list_options->stack, "only those active on this stack")->type_name("STACK");
  list->add_option("--family", list_options->family,
                   "only those of a folder (graphs) or of codes that begin so (CG)")
      ->type_name("NAME");
  list->add_option("--kind", list_options->kind, "only rejects, breaks, advice, or rewrite")
      ->check(CLI::IsMember({"rejects", "breaks", "advice", "rewrite"}));
  list->add_option("--format", list_options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  list->add_option("--rules", list_options->rule_folders, "a folder of own rules; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  list->callback([list_options, &exit_code] {
    list_rules(*list_options);
    exit_code = kExitClean;
  });

  auto show_options = std::make_shared<ShowOptions>();
  CLI::App* show = rules->add_subcommand("show", "the text of a rule or of a fact that rules define");
  show->add_option("what", show_options->code, "code, name, or fact")->required()->type_name("CODE|FACT");
  show->add_option("--rules", show_options->rule_folders, "a folder of own rules; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  show->callback([show_options, &exit_code] {
    show_rule(*show_options);
    exit_code = kExitClean;
  });

  auto check_options = std::make_shared<CheckOptionsOfRules>();
  CLI::App* check = rules->add_subcommand("check", "what is wrong with a folder of own rules");
  check->add_option("folder", check_options->folders, "folders of .rule files")->required()->type_name("DIR");
  add_report_options(*check, check_options->report);
  check->callback([check_options, &exit_code] { exit_code = check_rules(*check_options); });

  add_conformance_command(*rules, exit_code);
}

}  // namespace capstan
