// Runs the Markdown beside every rule: docs/rule-language.md, "The Markdown beside a rule", says what a block
// claims. One test per file, so that `ctest -R CG004` runs one rule's document.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "compiler/config/compose.h"
#include "compiler/driver/workspace.h"
#include "compiler/fixes/apply.h"
#include "compiler/fixes/suggest.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string text;
  std::uint32_t line = 0;  ///< of the file, of the block's first line
  std::vector<std::string> targets;
  std::string fixed_by;
  std::set<std::pair<std::uint32_t, std::string>> marks;  ///< (line in the block, "error CG004")
};

std::string trimmed(std::string text) {
  const auto begin = text.find_first_not_of(" \t");
  const auto end = text.find_last_not_of(" \t\r");
  return begin == std::string::npos ? std::string() : text.substr(begin, end - begin + 1);
}

void read_line(const std::string& line, Block& block) {
  const auto comment = line.rfind("# ");
  if (comment == std::string::npos) return;
  const std::string words = line.substr(comment + 2);
  for (const std::string level : {"error", "warning", "hint"}) {
    if (words.starts_with(level + ": "))
      block.marks.emplace(
          static_cast<std::uint32_t>(std::count(block.text.begin(), block.text.end(), '\n')) + 1,
          level + " " + trimmed(words.substr(level.size() + 2)));
  }
  if (words.starts_with("fixed by: ")) block.fixed_by = trimmed(words.substr(10));
  if (words.starts_with("target: ")) {
    std::istringstream names(words.substr(8));
    for (std::string name; std::getline(names, name, ',');) block.targets.push_back(trimmed(name));
  }
}

std::vector<Block> blocks_of(const std::string& path) {
  std::vector<Block> blocks;
  std::ifstream file(path);
  bool inside = false;
  std::uint32_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    if (!inside && line == "```toml") {
      inside = true;
      blocks.emplace_back().line = number + 1;
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      read_line(line, blocks.back());
      blocks.back().text += line + "\n";
    }
  }
  return blocks;
}

/// The values of a text, without [target] (which the block's first line may repeat).
std::map<std::string, std::string> values_of(const std::string& text) {
  SourceMap sources;
  SyntaxProblem problem;
  const SourceId id = sources.add("block", text, SourceKind::file);
  const auto tree = parse_toml(id, sources, problem);
  EXPECT_TRUE(tree) << problem.message;
  std::map<std::string, std::string> values;
  if (tree) {
    Layer layer;
    layer.tree = *tree;
    layer.source = id;
    Sink sink;
    for (const auto& [path, setting] : compose({layer}, sink).settings)
      // An emptied table says nothing.
      if (setting.value != Value(Value::Table{})) values.emplace(path, to_text(setting.value));
  }
  return values;
}

/// One finding of the rule: its level and code, and every line of the block that it labels.
struct Found {
  std::string words;
  std::set<std::uint32_t> lines;
};

struct Checked {
  std::vector<Diagnostic> diagnostics;
  std::vector<Found> found;
};

Checked check_block(const Block& block, const std::string& target, const std::string& code) {
  ConfigOptions options;
  options.target = target;
  // A block is a fragment of a config that states its model.
  if (block.text.find("num_layers") == std::string::npos) options.overrides.push_back("model.num_layers=8");
  Sink sink;
  Workspace workspace(options, sink);
  const SourceId id = workspace.sources().add("block.toml", block.text, SourceKind::file);
  Checked checked;
  if (const auto prepared = workspace.prepare(id, sink)) {
    check_and_suggest(
        {prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources()},
        CheckOptions{}, sink);
  }
  checked.diagnostics = sink.take();
  for (const Diagnostic& diagnostic : checked.diagnostics) {
    if (diagnostic.code != code) {
      // TG002: a block need not state the cluster. A value that no list of the release holds, as a warning:
      // rules read what frameworks compare with, which is more than what they document.
      const bool unlisted = diagnostic.code == "TY005" && diagnostic.severity == Severity::warning;
      if (diagnostic.code != "TG002" && !unlisted) {
        EXPECT_NE(diagnostic.kind, FindingKind::problem) << diagnostic.code << " " << diagnostic.message;
      }
      continue;
    }
    Found& found = checked.found.emplace_back();
    found.words = std::string(severity_name(diagnostic.severity)) + " " + code;
    for (const Label& label : diagnostic.labels) {
      if (label.span.source == id) found.lines.insert(workspace.sources()[id].locate(label.span.begin).line);
    }
  }
  return checked;
}

std::string shown(const std::vector<Found>& found) {
  std::string out;
  for (const Found& finding : found) {
    out += "  " + finding.words + " at lines";
    for (const std::uint32_t line : finding.lines) out += " " + std::to_string(line);
    out += "\n";
  }
  return out.empty() ? "  nothing\n" : out;
}

std::string shown(const std::set<std::pair<std::uint32_t, std::string>>& marks) {
  std::string out;
  for (const auto& [line, words] : marks) out += "  " + words + " at line " + std::to_string(line) + "\n";
  return out.empty() ? "  nothing\n" : out;
}

/// Each mark is met by a finding that labels its line, and no finding is left over.
bool agree(std::vector<Found> found, const std::set<std::pair<std::uint32_t, std::string>>& marks) {
  for (const auto& [line, words] : marks) {
    const auto met = std::find_if(found.begin(), found.end(), [&](const Found& finding) {
      return finding.words == words && finding.lines.contains(line);
    });
    if (met == found.end()) return false;
    found.erase(met);
  }
  return found.empty();
}

/// The fix titled `block.fixed_by`, applied to the block it mends, gives the values of `block`.
void check_fix(const Block& invalid, const Block& block, const std::string& code) {
  const Checked checked = check_block(invalid, invalid.targets.front(), code);
  for (const Diagnostic& diagnostic : checked.diagnostics) {
    if (diagnostic.code != code) continue;
    for (const Fix& fix : diagnostic.fixes) {
      if (!fix.title.starts_with(block.fixed_by)) continue;
      const auto mended = apply_edits(invalid.text, fix.edits);
      ASSERT_TRUE(mended) << "the edits of `" << fix.title << "` overlap";
      EXPECT_EQ(values_of(*mended), values_of(block.text)) << "after `" << fix.title << "`:\n" << *mended;
      return;
    }
    std::string titles;
    for (const Fix& fix : diagnostic.fixes) titles += "  " + fix.title + "\n";
    ADD_FAILURE() << "no fix `" << block.fixed_by << "`; offered are\n" << titles;
    return;
  }
  ADD_FAILURE() << "the block before has no finding to fix";
}

std::vector<std::string> rule_files(const std::string& extension) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(CAPSTAN_SOURCE_DIR "/rules")) {
    if (entry.path().extension() == extension && entry.path().parent_path().filename() != "facts" &&
        entry.path().filename() != "README.md")
      files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Silent rewrites only normalise: they make no finding that a block could show.
bool is_silent(const std::string& document) {
  std::ifstream text(fs::path(document).replace_extension(".rule"));
  std::stringstream content;
  content << text.rdbuf();
  static const std::regex silent("\\bsilent +yes\\b");
  return std::regex_search(content.str(), silent);
}

class RuleDocument : public testing::TestWithParam<std::string> {};

TEST_P(RuleDocument, HoldsWhatItClaims) {
  const std::string code =
      fs::path(GetParam()).filename().string().substr(0, fs::path(GetParam()).filename().string().find('-'));
  const std::vector<Block> blocks = blocks_of(GetParam());
  const Block* invalid = nullptr;
  bool any_mark = false;
  for (const Block& block : blocks) {
    SCOPED_TRACE(GetParam() + ":" + std::to_string(block.line));
    ASSERT_FALSE(block.targets.empty()) << "a block needs a first line `# target: STACK`";
    any_mark = any_mark || !block.marks.empty();
    for (const std::string& target : block.targets) {
      const Checked checked = check_block(block, target, code);
      EXPECT_TRUE(agree(checked.found, block.marks)) << "on " << target << " found\n"
                                                     << shown(checked.found) << "but marked is\n"
                                                     << shown(block.marks);
    }
    if (!block.marks.empty()) invalid = &block;
    if (block.fixed_by.empty()) continue;
    ASSERT_NE(invalid, nullptr) << "no invalid block stands before this one";
    check_fix(*invalid, block, code);
  }
  EXPECT_TRUE(any_mark || is_silent(GetParam())) << "no block shows the finding";
}

std::string test_name(const testing::TestParamInfo<std::string>& parameter) {
  std::string name = fs::path(parameter.param).stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Rules, RuleDocument, testing::ValuesIn(rule_files(".md")), test_name);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(RuleDocument);

TEST(RuleDocuments, EveryRuleHasOneAndNoneStandsAlone) {
  std::set<std::string> rules, documents;
  for (const std::string& file : rule_files(".rule")) {
    rules.insert(fs::path(file).stem().string());
  }
  for (const std::string& file : rule_files(".md")) documents.insert(fs::path(file).stem().string());
  for (const std::string& rule : rules) EXPECT_TRUE(documents.contains(rule)) << rule << " has no .md";
  for (const std::string& document : documents)
    EXPECT_TRUE(rules.contains(document)) << document << " has no .rule";
}

}  // namespace
}  // namespace capstan
