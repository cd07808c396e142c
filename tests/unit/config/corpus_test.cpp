// The functional tests of Megatron-LM, read as they are. CAPSTAN_CORPUS names a folder with one folder a
// release
// ("0.17.0"), each with model_config.yaml files under any names; without it nothing is tested here.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/read_config.h"
#include "compiler/facts/derive.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/resolve.h"
#include "grammar/yaml/yaml_document.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct Figures {
  std::size_t files = 0, runs = 0, arguments = 0, mapped = 0, irrelevant = 0, unknown = 0,
              of_other_releases = 0, not_literal = 0, unread = 0, errors = 0;
};

class Corpus {
 public:
  Corpus(const std::string& stack, const RuleSet& rules)
      : view_(builtin_schema(), *builtin_schema().find_stack(stack)), rules_(select(rules, view_.stack())) {}

  void read(const fs::path& path, Figures& figures) {
    ++figures.files;
    SourceMap sources;
    ReadFailure failure;
    const auto text = read_text_file(path.string(), failure);
    ASSERT_TRUE(text) << path << failure.reason;
    const SourceId id = sources.add(path.string(), *text, SourceKind::file);
    ASSERT_EQ(detect_format(path.string(), *text), ConfigFormat::functional_test) << path;
    std::vector<std::string> runs = {""};
    for (std::size_t i = 0; i < runs.size(); ++i)
      read_run(path, sources, id, runs[i], i == 0 ? &runs : nullptr, figures);
  }

 private:
  void read_run(const fs::path& path, SourceMap& sources, SourceId id, const std::string& run,
                std::vector<std::string>* further, Figures& figures) {
    ++figures.runs;
    Sink sink;
    ReadRecord record;
    const auto layers =
        read_config(id, ConfigFormat::functional_test, view_, sources, disk_reader(), sink, record, run);
    if (!layers) {
      ++figures.unread;
      ADD_FAILURE() << path << " is not read";
      return;
    }
    // What the YAML holds, counted apart from the reader.
    SyntaxProblem problem;
    std::vector<SyntaxProblem> duplicates;
    const auto tree = parse_yaml(id, sources, problem, &duplicates);
    const std::size_t written = find(*tree, run.empty() ? "MODEL_ARGS" : run)->entries.size();
    EXPECT_EQ(record.total, written) << path;
    std::set<std::string> irrelevant, unknown;
    for (const auto& entry : record.irrelevant) {
      if (builtin_flag_table().find(entry.name) != nullptr) irrelevant.insert(entry.name);
    }
    for (const auto& entry : record.unknown) {
      if (builtin_flag_table().find(entry.name) == nullptr)
        unknown.insert(entry.name);
      else
        ++figures.of_other_releases;
    }
    EXPECT_EQ(record.mapped + irrelevant.size() + unknown.size(), written)
        << path << ": some argument is dropped";
    figures.arguments += written;
    figures.mapped += record.mapped;
    figures.irrelevant += irrelevant.size();
    figures.unknown += unknown.size();
    figures.not_literal += record.not_literal.size();
    if (further != nullptr) {
      for (const auto& entry : record.further_runs) further->push_back(entry.name);
    }
    Config config = compose(*layers, sink);
    bind(config, view_, sink);
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      if (diagnostic.severity != Severity::error) continue;
      ++figures.errors;
      ADD_FAILURE() << path << ": " << diagnostic.code << " " << diagnostic.message;
    }
    const Evaluation evaluation = evaluate(rules_, derive_facts(config, view_, rules_.set->names));
    for (const Violation& violation : evaluation.violations) {
      const RuleItem& item = rules_.set->items[violation.item];
      if (violation.undecided || item.kind != RuleItem::Kind::check || item.severity != Severity::error)
        continue;
      ++figures.errors;
      ADD_FAILURE() << path << ": " << item.code << " " << item.name;
    }
  }

  SchemaView view_;
  ActiveRules rules_;
};

TEST(Corpus, FunctionalTestsAreReadWhole) {
  const char* folder = std::getenv("CAPSTAN_CORPUS");
  if (folder == nullptr) GTEST_SKIP() << "CAPSTAN_CORPUS names no folder";
  Sink sink;
  const RuleSet rules = resolve(builtin_rule_files(), builtin_phases(), builtin_schema(), sink);
  Figures figures;
  for (const fs::directory_entry& release : fs::directory_iterator(folder)) {
    const std::string name = release.path().filename().string();
    const std::string stack = "megatron-lm-" + name.substr(0, name.rfind('.'));
    ASSERT_NE(builtin_schema().find_stack(stack), nullptr) << stack;
    Corpus corpus(stack, rules);
    for (const fs::directory_entry& file : fs::directory_iterator(release.path()))
      corpus.read(file.path(), figures);
  }
  std::printf(
      "%zu files, %zu runs, %zu arguments: %zu mapped, %zu known to have no key, %zu unknown; %zu of another "
      "release, "
      "%zu values not literal; %zu runs not read, %zu errors\n",
      figures.files, figures.runs, figures.arguments, figures.mapped, figures.irrelevant, figures.unknown,
      figures.of_other_releases, figures.not_literal, figures.unread, figures.errors);
  EXPECT_GT(figures.files, 0u);
  EXPECT_GE(100 * (figures.mapped + figures.irrelevant), 99 * figures.arguments);
}

}  // namespace
}  // namespace capstan
