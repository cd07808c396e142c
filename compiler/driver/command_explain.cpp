#include "compiler/driver/command_explain.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "compiler/diagnostics/codes.h"
#include "compiler/driver/command_rules_parts.h"
#include "compiler/driver/rule_description.h"
#include "compiler/driver/solve_json.h"
#include "compiler/driver/usage_error.h"
#include "compiler/ruleset/load_folder.h"
#include "compiler/ruleset/message.h"
#include "compiler/ruleset/message_fragment.h"

namespace capstan {
namespace {

struct ExplainOptions {
  std::vector<std::string> words;
  std::vector<std::string> rule_folders;
  std::string format = "text";
};

// A pattern with less text of its own than this says nothing about a log line.
constexpr std::size_t kFewestCharacters = 8;

std::size_t own_text(std::string_view pattern) {
  return static_cast<std::size_t>(
      std::count_if(pattern.begin(), pattern.end(), [](char c) { return c != '*' && c != ' '; }));
}

/// A bare assert says no more than the name of its exception: it is meant by a line that ends with that name.
bool says_exception_alone(std::string_view pattern, std::string_view line) {
  if (!pattern.ends_with("Error") || pattern.find(' ') != std::string_view::npos) return true;
  while (!line.empty() && (line.back() == ' ' || line.back() == ':')) line.remove_suffix(1);
  return line.ends_with(pattern);
}

/// Rules whose framework message stands in the line; the one that matches most of it first. `most` gets how
/// much that is.
std::vector<RuleGroup> find_by_message(const std::vector<RuleGroup>& groups, const std::string& line,
                                       std::size_t& most) {
  std::vector<std::pair<std::size_t, const RuleGroup*>> found;
  for (const RuleGroup& group : groups) {
    std::size_t best = 0;
    for (const RuleItem* item : group.items) {
      for (const std::string& pattern : item->raises) {
        const std::size_t size = own_text(pattern);
        if (size >= kFewestCharacters && matches_pattern("*" + pattern + "*", line) &&
            says_exception_alone(pattern, line))
          best = std::max(best, size);
      }
    }
    if (best > 0) found.emplace_back(best, &group);
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  most = found.empty() ? 0 : found.front().first;
  std::vector<RuleGroup> sorted;
  for (const auto& [size, group] : found) sorted.push_back(*group);
  return sorted;
}

// A piece of a message with less text of its own than this could be of any rule.
constexpr std::size_t kFewestOfFragment = 20;
constexpr std::size_t kLongestFragment = 2000;

/// A rule, and the message of the framework that the text is a piece of.
struct FragmentMatch {
  const RuleGroup* group;
  std::string pattern;
};

/// Rules that know a message of which the text is a piece, with more of it than `known` characters: those
/// alone that have most.
std::vector<FragmentMatch> find_by_fragment(const std::vector<RuleGroup>& groups, const std::string& text,
                                            std::size_t known) {
  std::vector<FragmentMatch> found;
  if (own_text(text) < kFewestOfFragment || text.size() > kLongestFragment) return found;
  std::size_t most = std::max(kFewestOfFragment, known + 1);
  for (const RuleGroup& group : groups) {
    FragmentMatch match{nullptr, {}};
    for (const RuleItem* item : group.items) {
      for (const std::string& pattern : item->raises) {
        const std::size_t size = fragment_of_pattern(pattern, text);
        if (size < most) continue;
        if (size > most) found.clear();
        if (size > most || match.group == nullptr) match = {&group, pattern};
        most = size;
      }
    }
    if (match.group != nullptr) found.push_back(std::move(match));
  }
  return found;
}

std::string list_fragments(const std::vector<FragmentMatch>& found) {
  std::string out = fmt::format("{} rules know a message with this text:\n", found.size());
  for (const FragmentMatch& match : found)
    out += fmt::format("{:<6} {}: {}\n", match.group->code, match.group->first().name, match.pattern);
  return out;
}

std::string document_of(const RuleItem& item) {
  if (item.file.starts_with("rules/")) {
    if (std::string text = builtin_document(item.file); !text.empty()) return text;
  }
  ReadFailure failure;
  return read_text_file(document_path(item.file), failure).value_or("");
}

[[noreturn]] void fail_unknown(const std::vector<RuleGroup>& groups, const std::string& text) {
  std::vector<std::string> candidates;
  for (const RuleGroup& group : groups) {
    candidates.push_back(group.code);
    candidates.push_back(group.first().name);
  }
  for (const CodeInfo& info : builtin_codes()) candidates.emplace_back(info.code);
  const std::string near = nearest(text, candidates);
  if (near.empty() && text.find(' ') != std::string::npos && own_text(text) < kFewestOfFragment)
    throw UsageError(
        fmt::format("`{}` is no message that a rule knows; a piece of one must have {} characters at "
                    "least, blanks not counted",
                    text, kFewestOfFragment));
  throw UsageError(fmt::format("`{}` is no code, no rule's name, and no message that a rule knows{}", text,
                               near.empty() ? "" : fmt::format("; did you mean `{}`?", near)));
}

std::string explain_builtin(const CodeInfo& info, const std::string& format) {
  if (format == "text") {
    return fmt::format("{} {}\n  {}, a problem that Capstan itself reports\n  says: {}\n", info.code,
                       info.name, severity_name(info.severity), info.title);
  }
  return json_document(fmt::format(
      R"({{"version":1,"rules":[],"problem":{{"code":{},"name":{},"severity":"{}","title":{}}}}})",
      json_of_text(std::string(info.code)), json_of_text(std::string(info.name)),
      severity_name(info.severity), json_of_text(std::string(info.title))));
}

std::string explain(const ExplainOptions& options) {
  std::string text;
  for (const std::string& word : options.words) text += (text.empty() ? "" : " ") + word;
  const LoadedRules loaded(with_project_rules(options.rule_folders));
  const std::vector<RuleGroup> groups = group_rules(loaded.rules);
  std::vector<RuleGroup> found;
  const auto named = [&groups](const std::string& word) {
    return std::find_if(groups.begin(), groups.end(), [&word](const RuleGroup& group) {
      return group.code == word || group.first().name == word;
    });
  };
  // Several codes, or one line of a log whose words the shell took apart.
  if (std::all_of(options.words.begin(), options.words.end(),
                  [&](const std::string& word) { return named(word) != groups.end(); })) {
    for (const std::string& word : options.words) found.push_back(*named(word));
  }
  if (found.empty()) {
    if (const CodeInfo* info = find_code(text)) return explain_builtin(*info, options.format);
    std::size_t most = 0;
    found = find_by_message(groups, text, most);
    // A message without its end is told from the bare beginnings that some rules know ("AssertionError").
    const std::vector<FragmentMatch> fragments = find_by_fragment(groups, text, most);
    if (fragments.size() > 1 && options.format == "text") return list_fragments(fragments);
    if (!fragments.empty()) found.clear();
    for (const FragmentMatch& match : fragments) found.push_back(*match.group);
  }
  if (found.empty()) fail_unknown(groups, text);
  std::vector<std::string> documents;
  for (const RuleGroup& group : found) documents.push_back(document_of(group.first()));
  if (options.format == "json") return rules_to_json(found, documents, loaded.rules, builtin_schema());
  std::string out;
  for (std::size_t index = 0; index < found.size(); ++index) {
    if (index > 0) out += "\n";
    out += describe_rule(found[index], loaded.rules, builtin_schema());
    // The page in full only when it is clear which rule is meant.
    if (found.size() == 1 && !documents[index].empty()) out += "\n" + documents[index];
  }
  return out;
}

}  // namespace

void add_explain_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = program.add_subcommand(
      "explain", "a rule in full, by its code, its name, or a line of the framework's log");
  command->add_option("what", options->words, "code, name, or a log line or a piece of one")
      ->required()
      ->type_name("CODE|TEXT");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_option("--rules", options->rule_folders, "a folder of own rules; repeatable")
      ->type_name("DIR")
      ->allow_extra_args(false);
  command->callback([options, &exit_code] {
    const std::string text = explain(*options);
    std::fwrite(text.data(), 1, text.size(), stdout);
    exit_code = kExitClean;
  });
}

}  // namespace capstan
