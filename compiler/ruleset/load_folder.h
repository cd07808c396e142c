// Rule files of a folder: parsed, with what is wrong reported at its place.
#pragma once

#include <string>
#include <vector>

#include "compiler/ruleset/resolve.h"
#include "compiler/ruleset/rule_archive.h"

namespace capstan {

/// The names of rules/phases.toml, in order; problems are reported.
std::vector<std::string> load_phases(const std::string& path, SourceMap& sources, Sink& sink);

/// Paths below `folder` that end so, sorted; relative to it. Reports a folder that cannot be read.
std::vector<std::string> list_files(const std::string& folder, std::string_view suffix, Sink& sink);

/// As load_rule_folder(), with paths in `files` made of `prefix` and the path below the folder.
std::vector<RuleFile> load_rule_files(const std::string& folder, const std::string& prefix,
                                      SourceMap& sources, Sink& sink);

/// The Markdown beside the rule files (path of the rule file, text). A rule without one, and a Markdown file
/// without a rule, are reported (RU010); README.md is no rule's.
TextPairs load_rule_documents(const std::string& folder, const std::string& prefix,
                              const std::vector<RuleFile>& files, Sink& sink);

/// The same for a user's folder, whose rule files are named by their paths.
TextPairs load_rule_documents(const std::string& folder, const std::vector<RuleFile>& files, Sink& sink);

/// Path of the Markdown that belongs to a rule file.
std::string document_path(const std::string& rule_path);

}  // namespace capstan
