// Fixing whole files, on random configs of real stacks written as text.
#include "compiler/driver/fix_file.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <map>
#include <set>
#include <sstream>

#include "compiler/driver/selection_options.h"
#include "compiler/solve/check.h"
#include "tests/support/random_config.h"
#include "tests/support/stack_names.h"

namespace capstan {
namespace {

std::string text_of(const Config& config, const std::string& stack) {
  std::map<std::string, std::string> sections;
  for (const auto& [path, setting] : config.settings) {
    const std::size_t dot = path.find('.');
    if (setting.value.is_none()) continue;
    sections[path.substr(0, dot)] +=
        fmt::format("{} = {}  # {}\n", path.substr(dot + 1), to_text(setting.value), path);
  }
  sections["target"] += fmt::format("stack = \"{}\"\n", stack);
  std::string text = "# kept\n";
  for (const auto& [section, keys] : sections) text += fmt::format("[{}]\n{}\n", section, keys);
  return text;
}

std::multiset<std::string> names_of(const std::vector<Diagnostic>& diagnostics) {
  std::multiset<std::string> names;
  for (const Diagnostic& one : diagnostics) {
    if (one.severity != Severity::hint) names.insert(one.code);
  }
  return names;
}

class FixFile : public testing::TestWithParam<const char*> {};

std::set<std::string> lines_of(const std::string& text) {
  std::set<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.insert(line);
  return lines;
}

// A second time changes nothing; what is left was there before, or was silent because of a key that could not
// be read; lines whose key keeps its value stay as they were, comment included.
TEST_P(FixFile, TwiceIsOnce) {
  const Stack& stack = *builtin_schema().find_stack(GetParam());
  const SchemaView schema(builtin_schema(), stack);
  const RuleBook book(schema, select(builtin_rules(), stack));
  RandomConfigs random(book, 21);
  Sink sink;
  Workspace workspace({}, sink);
  FixFileOptions options;
  options.known = known_codes(workspace.rules());
  options.selection = make_selection({}, options.known);
  const auto findings_of = [&](const std::string& text) {
    Sink found;
    const auto prepared = workspace.prepare(workspace.sources().add("a.toml", text, SourceKind::file), found);
    check({prepared->config, *prepared->schema, *prepared->rules, prepared->stack, workspace.sources(),
           prepared->shared},
          {}, found);
    return found.take();
  };
  const auto values_of = [&](const std::string& text) {
    Sink ignored;
    const auto prepared =
        workspace.prepare(workspace.sources().add("a.toml", text, SourceKind::file), ignored);
    std::map<std::string, Value> values;
    for (const auto& [path, setting] : prepared->config.settings) values[path] = setting.value;
    return values;
  };
  std::size_t changed = 0;
  for (int round = 0; round < 12; ++round) {
    const std::string text = text_of(random.next(), stack.name);
    for (const bool unsafe : {false, true}) {
      options.unsafe = unsafe;
      const FixedFile once = fix_text(workspace, "a.toml", text, options);
      ASSERT_TRUE(once.readable) << text;
      EXPECT_TRUE(once.text.starts_with("# kept\n"));
      const FixedFile twice = fix_text(workspace, "a.toml", once.text, options);
      EXPECT_EQ(twice.text, once.text) << text;
      EXPECT_TRUE(twice.steps.empty());
      EXPECT_EQ(names_of(twice.left), names_of(once.left));
      const std::multiset<std::string> had = names_of(findings_of(text));
      for (const std::string& code : names_of(once.left)) {
        if (!had.contains(code)) ADD_FAILURE() << code << " is new after the fixes of\n" << text;
      }
      EXPECT_LE(names_of(once.left).size(), had.size());
      // Settings are one a line, each with its key behind it.
      const std::map<std::string, Value> first = values_of(text), last = values_of(once.text);
      const std::set<std::string> lines = lines_of(once.text);
      for (const std::string& line : lines_of(text)) {
        const std::size_t comment = line.find("  # ");
        if (comment == std::string::npos) continue;
        const std::string key = line.substr(comment + 4);
        const auto kept = last.find(key);
        if (kept != last.end() && kept->second == first.at(key)) {
          EXPECT_TRUE(lines.contains(line)) << line;
        }
      }
      changed += once.text != text;
    }
  }
  EXPECT_GT(changed, 5u);
}

INSTANTIATE_TEST_SUITE_P(Stacks, FixFile, testing::Values("bridge-0.4", "bridge-0.6", "core-0.17"),
                         [](const auto& instance) { return test::stack_test_name(instance); });

}  // namespace
}  // namespace capstan
