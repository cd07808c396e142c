// What the tree must look like: who may include whom, which libraries stay where, and that every diagnostic
// code is tested.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics/codes.h"
#include "compiler/ruleset/resolve.h"

namespace capstan {
namespace {

namespace fs = std::filesystem;

const fs::path kRoot = CAPSTAN_SOURCE_DIR;

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<fs::path> sources_below(const std::vector<std::string>& folders) {
  static const std::set<std::string> kinds = {".h", ".cpp", ".cu", ".cuh", ".def"};
  std::vector<fs::path> files;
  for (const std::string& folder : folders) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.is_regular_file() && kinds.contains(entry.path().extension().string())) {
        files.push_back(entry.path().lexically_relative(kRoot));
      }
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

struct Include {
  std::string target;
  bool quoted = false;
};

std::vector<Include> includes_of(const fs::path& file) {
  std::vector<Include> includes;
  std::istringstream text(read_file(kRoot / file));
  for (std::string line; std::getline(text, line);) {
    const auto start = line.find_first_not_of(" \t");
    if (start == std::string::npos || line[start] != '#') continue;
    const auto word = line.find("include", start);
    const auto open = line.find_first_of("<\"", start);
    if (word == std::string::npos || open == std::string::npos || open < word) continue;
    const char close = line[open] == '<' ? '>' : '"';
    const auto end = line.find(close, open + 1);
    if (end != std::string::npos) includes.push_back({line.substr(open + 1, end - open - 1), close == '"'});
  }
  return includes;
}

/// "compiler/config" of "compiler/config/exchange/x.h".
std::string room_of(const std::string& path) {
  const auto first = path.find('/');
  if (first == std::string::npos) return {};
  const auto second = path.find('/', first + 1);
  return second == std::string::npos ? path.substr(0, first) : path.substr(0, second);
}

/// Data flows down this list; a room includes rooms of lower rank and its own.
const std::map<std::string, int>& ranks() {
  static const std::map<std::string, int> ranks = {
      {"grammar/source", 0},   {"compiler/diagnostics", 1}, {"grammar/toml", 2},      {"grammar/rule", 2},
      {"grammar/override", 2}, {"grammar/environment", 2},  {"grammar/arguments", 3}, {"grammar/yaml", 3},
      {"compiler/schema", 4},  {"compiler/embed", 5},       {"compiler/config", 6},   {"compiler/facts", 7},
      {"compiler/ruleset", 8}, {"compiler/constraints", 9}, {"compiler/solve", 10},   {"compiler/fixes", 11},
      {"compiler/plan", 12},   {"compiler/driver", 13}};
  return ranks;
}

TEST(Architecture, IncludesPointOneWay) {
  for (const fs::path& file : sources_below({"grammar", "compiler"})) {
    // The program that embeds rules/ stands at the end of the build's own flow, as the driver does of the
    // user's.
    const bool is_build_program = file == "compiler/embed/embed_main.cpp";
    const std::string room = is_build_program ? "compiler/driver" : room_of(file.string());
    ASSERT_TRUE(ranks().contains(room)) << file << " is in a room that the list does not have";
    for (const Include& include : includes_of(file)) {
      const std::string target = room_of(include.target);
      if (!include.quoted) continue;
      ASSERT_FALSE(include.target.starts_with("runtime/")) << file << " includes " << include.target;
      ASSERT_TRUE(ranks().contains(target))
          << file << " includes " << include.target << "; write the path from the root";
      if (target == room) continue;
      // The grammar knows no diagnostics, although these come early.
      EXPECT_FALSE(room.starts_with("grammar/") && target.starts_with("compiler/"))
          << file << " includes " << include.target;
      EXPECT_LT(ranks().at(target), ranks().at(room)) << file << " includes " << include.target;
    }
  }
}

TEST(Architecture, TheRuntimeKnowsThePlanAndNothingElse) {
  static const std::set<std::string> plan = {"compiler/plan/plan.h", "compiler/plan/op_kinds.def"};
  for (const fs::path& file : sources_below({"runtime"})) {
    for (const Include& include : includes_of(file)) {
      if (!include.quoted) continue;
      const bool allowed =
          include.target.starts_with("runtime/") || include.target.starts_with("grammar/source/") ||
          include.target.starts_with("compiler/diagnostics/") || plan.contains(include.target);
      EXPECT_TRUE(allowed) << file << " includes " << include.target;
    }
  }
}

TEST(Architecture, LibrariesStayWhereTheyBelong) {
  struct Border {
    std::string opening;  ///< beginning of the include
    std::string home;     ///< beginning of the file's path
    bool headers = true;  ///< false: not in headers either
  };
  const std::vector<Border> borders = {{"toml++", "grammar/toml/", false},
                                       {"boost/spirit", "grammar/", true},
                                       {"z3++.h", "compiler/constraints/", true},
                                       {"z3.h", "compiler/constraints/", true},
                                       {"yaml-cpp", "grammar/yaml/", false},
                                       {"CLI/", "", false},
                                       {"nlohmann/", "", false}};
  for (const fs::path& file : sources_below({"grammar", "compiler", "runtime"})) {
    for (const Include& include : includes_of(file)) {
      for (const Border& border : borders) {
        if (!include.target.starts_with(border.opening)) continue;
        EXPECT_TRUE(file.string().starts_with(border.home)) << file << " includes " << include.target;
        if (border.headers) continue;
        EXPECT_NE(file.extension(), ".h") << file << " includes " << include.target;
      }
      const bool cuda = include.target.starts_with("cuda") || include.target.starts_with("cublas") ||
                        include.target.starts_with("cudnn") || include.target.starts_with("nccl");
      EXPECT_FALSE(cuda && !file.string().starts_with("runtime/")) << file << " includes " << include.target;
    }
  }
}

TEST(Architecture, NamesSayWhatTheyHold) {
  static const std::vector<std::string> empty_words = {"utils",   "helpers", "common",
                                                       "manager", "base",    "misc"};
  for (const fs::path& file : sources_below({"grammar", "compiler", "runtime", "tests"})) {
    const std::string stem = file.stem().string();
    for (const std::string& word : empty_words) {
      EXPECT_TRUE(stem != word && !stem.ends_with("_" + word) && !stem.starts_with(word + "_")) << file;
    }
    EXPECT_TRUE(
        std::all_of(stem.begin(), stem.end(),
                    [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }))
        << file << " is not in lower_snake";
  }
}

TEST(Architecture, HeadersOpenWithWhatTheyAreFor) {
  for (const fs::path& file : sources_below({"grammar", "compiler", "runtime"})) {
    if (file.extension() != ".h") continue;
    const std::string text = read_file(kRoot / file);
    EXPECT_TRUE(text.starts_with("//")) << file << " has no opening comment";
    EXPECT_NE(text.find("#pragma once"), std::string::npos) << file;
  }
}

/// Everything that tests hold: sources, golden files, rule documents.
std::string all_test_text() {
  std::string text;
  for (const char* folder : {"tests", "rules"}) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string kind = entry.path().extension().string();
      if (entry.is_regular_file() && entry.path().filename() != "architecture_test.cpp" &&
          (kind == ".cpp" || kind == ".md"))
        text += read_file(entry.path());
    }
  }
  return text;
}

/// Faults of the compiler itself, which no input provokes.
const std::set<std::string_view> kInternalFaults = {"LW005"};

TEST(Architecture, EveryCodeIsTested) {
  const std::string text = all_test_text();
  std::string untested;
  for (const CodeInfo& info : builtin_codes()) {
    if (!kInternalFaults.contains(info.code) && text.find(info.code) == std::string::npos)
      untested += std::string(info.code) + " " + std::string(info.name) + "\n";
  }
  EXPECT_TRUE(untested.empty()) << "no test names these codes:\n" << untested;
}

/// A reader who copies an example must not get "no such code".
TEST(Architecture, DocumentsNameCodesThatExist) {
  std::set<std::string> known = {"XA001"};  // the rule that docs/adding-a-rule.md writes
  for (const CodeInfo& info : builtin_codes()) known.insert(std::string(info.code));
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(kRoot / "rules")) {
    if (entry.path().extension() == ".rule") known.insert(entry.path().filename().string().substr(0, 5));
  }
  std::vector<fs::path> documents = {"README.md", "compiler/driver/selection_options.cpp",
                                     "compiler/driver/project_file.cpp"};
  for (const fs::directory_entry& entry : fs::directory_iterator(kRoot / "docs")) {
    if (entry.path().extension() == ".md") documents.push_back(entry.path().lexically_relative(kRoot));
  }
  const std::regex code("\\b[A-Z]{2}[0-9]{3}\\b");
  for (const fs::path& document : documents) {
    const std::string text = read_file(kRoot / document);
    for (std::sregex_iterator word(text.begin(), text.end(), code), end; word != end; ++word)
      EXPECT_TRUE(known.contains(word->str())) << document << " names " << word->str();
  }
}

TEST(Architecture, CodesAreUniqueAndNamesToo) {
  std::set<std::string_view> codes, names;
  for (const CodeInfo& info : builtin_codes()) {
    EXPECT_TRUE(codes.insert(info.code).second) << info.code;
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
  }
  // A code, a name and a family (the letters of a code) belong to Capstan's own problems or to rules.
  std::set<std::string_view> families;
  for (const std::string_view code : codes) families.insert(code.substr(0, code.find_first_of("0123456789")));
  for (const RuleItem& item : builtin_rules().items) {
    if (item.code.empty()) continue;
    const std::string_view code = item.code;
    EXPECT_FALSE(codes.contains(code)) << code;
    EXPECT_FALSE(names.contains(item.name)) << item.name;
    EXPECT_FALSE(families.contains(code.substr(0, code.find_first_of("0123456789")))) << code;
  }
}

}  // namespace
}  // namespace capstan
