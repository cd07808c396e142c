#include "compiler/ruleset/load_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "grammar/rule/rule_parser.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

// A folder of rules is small; a wrong one (the root of a disk) is refused before it is walked for minutes.
constexpr std::size_t kMaxFiles = 20000;

bool needs_document(const RuleFileSyntax& syntax) {
  return !syntax.rules.empty() || std::any_of(syntax.rewrites.begin(), syntax.rewrites.end(),
                                              [](const RewriteSyntax& rewrite) { return !rewrite.silent; });
}

}  // namespace

std::string document_path(const std::string& rule_path) {
  return fs::path(rule_path).replace_extension(".md").string();
}

std::vector<std::string> list_files(const std::string& folder, std::string_view suffix, Sink& sink) {
  std::vector<std::string> paths;
  std::error_code error;
  if (!fs::is_directory(folder, error)) {
    sink.problem(
        "SY002",
        fmt::format("cannot read the folder `{}`: {}", folder, error ? error.message() : "it is no folder"),
        {});
    return paths;
  }
  std::size_t seen = 0;
  fs::recursive_directory_iterator at(folder, fs::directory_options::skip_permission_denied, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (++seen > kMaxFiles) {
      sink.problem("SY002",
                   fmt::format("the folder `{}` holds more than {} files; name the folder of the rules",
                               folder, kMaxFiles),
                   {});
      return {};
    }
    std::error_code ignored;
    const std::string path = at->path().lexically_relative(folder).generic_string();
    if (path.ends_with(suffix) && !at->is_directory(ignored)) paths.push_back(path);
  }
  if (error)
    sink.problem("SY002", fmt::format("cannot read the folder `{}`: {}", folder, error.message()), {});
  std::sort(paths.begin(), paths.end());
  return paths;
}

std::vector<RuleFile> load_rule_files(const std::string& folder, const std::string& prefix,
                                      SourceMap& sources, Sink& sink) {
  std::vector<RuleFile> files;
  for (const std::string& path : list_files(folder, ".rule", sink)) {
    ReadFailure failure;
    const std::string on_disk = (fs::path(folder) / path).string();
    std::optional<std::string> text = read_text_file(on_disk, failure);
    if (!text) {
      sink.problem("SY002", fmt::format("cannot read `{}`: {}", on_disk, failure.reason), {});
      continue;
    }
    const SourceId source = sources.add(on_disk, std::move(*text), SourceKind::file);
    std::vector<RuleProblem> problems;
    std::optional<RuleFileSyntax> syntax = parse_rule_file(source, sources, problems);
    for (const RuleProblem& problem : problems) {
      sink.problem(problem.missing_field ? "RU002" : "RU001", describe(problem), problem.where);
    }
    if (!syntax) continue;
    if (syntax->rules.empty() && syntax->rewrites.empty() && syntax->defines.empty() && problems.empty())
      sink.problem("RU001", "the file holds no item: it needs a `rule`, a `rewrite` or a `define`",
                   {source, 0, 0});
    files.push_back({prefix + path, std::move(*syntax), false});
  }
  return files;
}

std::vector<RuleFile> load_rule_folder(const std::string& folder, SourceMap& sources, Sink& sink) {
  const std::size_t problems = sink.diagnostics().size();
  std::vector<RuleFile> files = load_rule_files(folder, (fs::path(folder) / "").string(), sources, sink);
  if (files.empty() && sink.diagnostics().size() == problems)
    sink.problem("SY002", fmt::format("the folder `{}` holds no `.rule` file", folder), {});
  for (RuleFile& file : files) file.of_user = true;
  return files;
}

TextPairs load_rule_documents(const std::string& folder, const std::string& prefix,
                              const std::vector<RuleFile>& files, Sink& sink) {
  TextPairs documents;
  // What is wrong with the folder itself was said when its rules were read.
  Sink said_before;
  const std::vector<std::string> markdown = list_files(folder, ".md", said_before);
  for (const RuleFile& file : files) {
    if (!needs_document(file.syntax)) continue;
    const std::string wanted = document_path(file.path);
    const std::string path = wanted.substr(prefix.size());
    if (!std::binary_search(markdown.begin(), markdown.end(), path)) {
      sink.problem("RU010", fmt::format("`{}` has no Markdown file `{}` beside it", file.path, wanted), {});
      continue;
    }
    ReadFailure failure;
    std::optional<std::string> text = read_text_file((fs::path(folder) / path).string(), failure);
    if (text)
      documents.emplace_back(file.path, std::move(*text));
    else
      sink.problem("SY002", fmt::format("cannot read `{}`: {}", wanted, failure.reason), {});
  }
  for (const std::string& path : markdown) {
    if (fs::path(path).filename() == "README.md") continue;
    const std::string rule = prefix + fs::path(path).replace_extension(".rule").string();
    if (std::none_of(files.begin(), files.end(), [&](const RuleFile& file) { return file.path == rule; })) {
      sink.problem(
          "RU010",
          fmt::format("`{}{}` documents no rule: there is no sound rule file `{}`", prefix, path, rule), {});
    }
  }
  return documents;
}

TextPairs load_rule_documents(const std::string& folder, const std::vector<RuleFile>& files, Sink& sink) {
  return load_rule_documents(folder, (fs::path(folder) / "").string(), files, sink);
}

std::vector<std::string> load_phases(const std::string& path, SourceMap& sources, Sink& sink) {
  ReadFailure failure;
  std::optional<std::string> text = read_text_file(path, failure);
  if (!text) {
    sink.problem("SY002", fmt::format("cannot read `{}`: {}", path, failure.reason), {});
    return {};
  }
  const SourceId source = sources.add(path, std::move(*text), SourceKind::file);
  SyntaxProblem problem;
  const std::optional<SyntaxNode> tree = parse_toml(source, sources, problem);
  if (!tree) {
    sink.problem("SY001", problem.message, problem.where);
    return {};
  }
  std::vector<std::string> phases;
  const SyntaxNode* list = find(*tree, "phases");
  if (list == nullptr || list->kind != SyntaxNode::Kind::list || list->items.empty()) {
    sink.problem("RU007", fmt::format("`{}` has no list `phases`", path), {});
    return {};
  }
  for (const SyntaxNode& item : list->items) {
    const Value value = to_value(item);
    if (value.kind() != Value::Kind::string)
      sink.problem("RU007", "a phase is a string", item.span);
    else if (std::find(phases.begin(), phases.end(), value.string()) != phases.end())
      sink.problem("RU007", fmt::format("phase `{}` is given twice", value.string()), item.span);
    else
      phases.push_back(value.string());
  }
  return phases;
}

}  // namespace capstan
