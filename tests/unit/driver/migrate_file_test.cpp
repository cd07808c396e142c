// Migrating the configs of rule documents and recipes between all releases of a front-end: every so many
// pairs of a config and two releases; CAPSTAN_STRIDE=1 tries all, which takes long, and lists which findings
// appear. CAPSTAN_CONFIGS names a folder of further configs.
#include "compiler/driver/migrate_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "grammar/toml/toml_comments.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

struct NamedText {
  std::string name, text;
};

/// The blocks of every rule's document, without a target of their own.
std::vector<NamedText> rule_blocks() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator(CAPSTAN_SOURCE_DIR "/rules")) {
    if (entry.path().extension() == ".md" && entry.path().filename() != "README.md")
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<NamedText> blocks;
  for (const fs::path& path : paths) {
    std::ifstream file(path);
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
      if (!inside && line == "```toml")
        blocks.push_back({path.filename().string(), ""});
      else if (inside && line != "```")
        blocks.back().text += line + "\n";
      inside = inside ? line != "```" : line == "```toml";
    }
  }
  return blocks;
}

std::vector<NamedText> folder_texts(const fs::path& folder) {
  std::vector<NamedText> texts;
  if (!fs::is_directory(folder)) return texts;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".toml") continue;
    std::ostringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    if (text.str().find("extends") == std::string::npos)
      texts.push_back({entry.path().filename().string(), text.str()});
  }
  std::sort(texts.begin(), texts.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return texts;
}

/// The text with its target stated as the stack; whatever else is said of one is taken away.
std::string with_stack(const std::string& text, const std::string& stack) {
  std::istringstream in(text);
  std::string out;
  bool in_target = false;
  bool stated = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[")) in_target = line.starts_with("[target]");
    const bool component =
        line.starts_with("stack") || line.starts_with("frontend") || line.starts_with("megatron-");
    if (in_target && component) continue;
    out += line + "\n";
    if (line.starts_with("[target]")) {
      out += "stack = \"" + stack + "\"  # here\n";
      stated = true;
    }
  }
  return stated ? out : out + "\n[target]\nstack = \"" + stack + "\"  # here\n";
}

std::multiset<std::string> comments_of(const std::string& text) {
  SourceMap sources;
  const SourceId id = sources.add("text", text, SourceKind::file);
  std::multiset<std::string> comments;
  for (const Comment& comment : find_toml_comments(id, sources)) {
    std::string_view words = sources.text(comment.span);
    while (!words.empty() && (words.back() == ' ' || words.back() == '\r')) words.remove_suffix(1);
    comments.emplace(words);
  }
  return comments;
}

class MigrateEveryConfig : public testing::TestWithParam<const char*> {
 protected:
  MigrateEveryConfig() : workspace_({}, sink_) { options_.known = {}; }

  MigratedFile migrate(const std::string& text, const Stack& to) {
    const SourceId file = workspace_.sources().add("a.toml", text, SourceKind::file);
    return migrate_source(workspace_, workspace_, file, to, options_);
  }

  /// `said` mentions the key, or its section as a whole.
  static bool mentions(const std::vector<std::string>& said, const std::string& key) {
    return std::any_of(said.begin(), said.end(), [&](const std::string& clause) {
      return clause.find("`" + key) != std::string::npos;
    });
  }

  void check(const NamedText& config, const Stack& from, const Stack& to) {
    const std::string text = with_stack(config.text, from.name);
    SCOPED_TRACE(config.name + " " + from.name + " -> " + to.name + "\n" + text);
    const MigratedFile once = migrate(text, to);
    if (!once.readable) return;
    if (from.name == to.name) {
      EXPECT_EQ(once.text, text);
      EXPECT_TRUE(once.migration.steps.empty() && once.migration.lost.empty());
      return;
    }
    ++tried_;
    SourceMap sources;
    SyntaxProblem problem;
    EXPECT_TRUE(parse_toml(sources.add("out", once.text, SourceKind::file), sources, problem))
        << problem.message << "\n"
        << once.text;
    const std::multiset<std::string> before = comments_of(text);
    const std::multiset<std::string> after = comments_of(once.text);
    EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()))
        << "comments are lost:\n"
        << once.text;
    std::set<std::string> codes;
    for (const Diagnostic& finding : once.before) codes.insert(finding.code);
    for (const Diagnostic& finding : once.after) {
      EXPECT_FALSE(finding.code.starts_with("SY") || finding.code.starts_with("TG")) << finding.message;
      if (finding.code == "TY001" || finding.code == "TY002" || finding.code == "TY003") {
        EXPECT_TRUE(mentions(once.migration.lost, finding.keys[0])) << finding.message << "\n" << once.text;
      }
    }
    EXPECT_TRUE(once.by_hand.empty());
    const MigratedFile again = migrate(text, to);
    EXPECT_EQ(again.text, once.text);
    const MigratedFile twice = migrate(once.text, to);
    EXPECT_EQ(twice.text, once.text);
    EXPECT_TRUE(twice.migration.steps.empty());
    check_values(text, once);
    note_new_errors(config, from, to, once);
  }

  /// Every value of the old text is in the new one, or a step or a loss names its key.
  void check_values(const std::string& text, const MigratedFile& once) {
    Sink sink;
    const auto old = workspace_.prepare(workspace_.sources().add("old", text, SourceKind::file), sink);
    const auto now = workspace_.prepare(workspace_.sources().add("new", once.text, SourceKind::file), sink);
    ASSERT_TRUE(old && now);
    for (const auto& [path, setting] : old->config.settings) {
      if (path.find('.') == std::string::npos) continue;  // an empty table
      const Setting* same = now->config.find(path);
      if (same != nullptr && to_text(same->value) == to_text(setting.value)) continue;
      const SourceMap& sources = workspace_.sources();  // read as one release or the other does
      if (same != nullptr && sources.text(same->origin.value) == sources.text(setting.origin.value)) continue;
      bool named = mentions(once.migration.lost, path);
      for (const MigrationStep& step : once.migration.steps) {
        for (const KeyChange& change : step.changes) named = named || change.path == path;
      }
      EXPECT_TRUE(named) << path << " was " << to_text(setting.value) << "\n" << once.text;
    }
    for (const auto& [path, setting] : now->config.settings) {
      if (old->config.find(path) != nullptr || path.find('.') == std::string::npos) continue;
      bool named = false;
      for (const MigrationStep& step : once.migration.steps) {
        for (const KeyChange& change : step.changes)
          named = named || change.path == path || change.new_path == path;
      }
      EXPECT_TRUE(named) << path << " is new\n" << once.text;
    }
  }

  void note_new_errors(const NamedText& config, const Stack& from, const Stack& to,
                       const MigratedFile& once) {
    const auto is_error = [](const Diagnostic& finding) { return finding.severity == Severity::error; };
    if (std::any_of(once.before.begin(), once.before.end(), is_error)) return;
    for (const Diagnostic& finding : once.after) {
      if (!is_error(finding)) continue;
      std::string& example = new_errors_[from.name + " -> " + to.name + " " + finding.code];
      if (example.empty()) example = config.name + ": " + finding.message;
    }
  }

  Sink sink_;
  Workspace workspace_;
  MigrateFileOptions options_;
  std::size_t tried_ = 0;
  std::map<std::string, std::string> new_errors_;
};

TEST_P(MigrateEveryConfig, KeepsWhatItSays) {
  const char* given = std::getenv("CAPSTAN_STRIDE");
  // A prime: every pair of releases is reached several times.
  const std::size_t stride =
      given == nullptr ? 211 : std::max<std::size_t>(1, std::strtoul(given, nullptr, 10));
  std::vector<NamedText> configs = rule_blocks();
  ASSERT_GT(configs.size(), 400u);
  for (NamedText& recipe : folder_texts(CAPSTAN_SOURCE_DIR "/recipes")) configs.push_back(std::move(recipe));
  if (const char* folder = std::getenv("CAPSTAN_CONFIGS")) {
    for (NamedText& more : folder_texts(folder)) configs.push_back(std::move(more));
  }
  std::vector<const Stack*> stacks;
  for (const Stack& stack : workspace_.schema().stacks()) {
    if (stack.frontend == GetParam()) stacks.push_back(&stack);
  }
  std::size_t pair = 0;
  for (const NamedText& config : configs) {
    for (const Stack* from : stacks) {
      for (const Stack* to : stacks) {
        if (++pair % stride == 0) check(config, *from, *to);
      }
    }
  }
  EXPECT_GT(tried_, 100u);
  if (given == nullptr) return;
  for (const auto& [what, example] : new_errors_) std::printf("%s  %s\n", what.c_str(), example.c_str());
}

INSTANTIATE_TEST_SUITE_P(Frontends, MigrateEveryConfig, testing::Values("bridge", "megatron-lm", "core"),
                         [](const auto& frontend) {
                           std::string name = frontend.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

}  // namespace
}  // namespace capstan
