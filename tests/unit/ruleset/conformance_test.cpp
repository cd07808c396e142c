// The tables of verdicts of the real framework (tests/conformance, compressed), each with its floor.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "compiler/driver/conformance.h"
#include "compiler/ruleset/resolve.h"
#include "tests/support/conformance_tables.h"

namespace capstan {
namespace {

struct Table {
  const char* name;
  double least_agreement;  ///< percent
  double least_named;      ///< percent of the rejected ones
};

constexpr Table kTables[] = {
    {"bridge-0.2.1", 99.9, 99}, {"bridge-0.3.0", 99.9, 99}, {"bridge-0.4.0", 99.9, 99},
    {"bridge-0.5.0", 99.9, 99}, {"bridge-0.6.0", 99.9, 99}, {"bridge-head", 99.9, 99},
    {"core-0.14.0", 99.9, 99},  {"core-0.15.0", 99.9, 99},  {"core-0.16.0", 99.9, 99},
    {"core-0.17.0", 99.9, 99},  {"core-0.18.0", 99.9, 99},  {"core-0.19.0", 99.9, 99},
    {"core-head", 99.9, 99}};

std::string documented_page() {
  std::ifstream file(CAPSTAN_SOURCE_DIR "/docs/conformance.md");
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

class ConformanceTable : public testing::TestWithParam<Table> {};

TEST_P(ConformanceTable, AgreesWithTheRealFramework) {
  const ConformanceTables tables;
  ConformanceCases cases;
  for (const char* dialect : {"legacy", "scope", "modules"})
    read_cases(tables.path_of(std::string("cases-") + dialect + ".jsonl"), cases);
  const std::string path = tables.path_of(std::string("verdicts-") + GetParam().name + ".jsonl");
  const auto stack = stack_of_table(path, builtin_schema());
  ASSERT_TRUE(stack);
  const Conformance found =
      judge_table(builtin_rules(), builtin_schema(), *stack, cases, read_verdicts(path));
  EXPECT_GT(found.cases, 100u);
  EXPECT_GE(found.agreement(), GetParam().least_agreement) << describe_disagreements(found).substr(0, 4000);
  EXPECT_GE(100.0 * static_cast<double>(found.named),
            GetParam().least_named * static_cast<double>(found.rejected))
      << summary_line(found);
  // docs/conformance.md has this very line.
  const std::string row = conformance_page({found}).substr(conformance_page({}).size());
  EXPECT_NE(documented_page().find("\n" + row), std::string::npos)
      << row << "docs/conformance.md is out of date; `capstan rules conformance --markdown` makes it";
}

INSTANTIATE_TEST_SUITE_P(Releases, ConformanceTable, testing::ValuesIn(kTables), [](const auto& table) {
  std::string name = table.param.name;
  for (char& c : name) c = c == '.' || c == '-' ? '_' : c;
  return name;
});

// The text around the lines, and their number and order; what each line says, the tables' own tests compare.
TEST(Conformance, DocumentIsCurrent) {
  const std::string page = documented_page();
  const std::string head = conformance_page({});
  ASSERT_TRUE(page.starts_with(head)) << page.substr(0, head.size());
  std::size_t at = head.size();
  for (const Table& table : kTables) {
    const auto stack = stack_of_table(std::string("verdicts-") + table.name + ".jsonl", builtin_schema());
    ASSERT_TRUE(stack);
    EXPECT_EQ(page.compare(at, stack->name.size() + 4, "| " + stack->name + " |"), 0) << page.substr(at, 40);
    at = page.find('\n', at);
    ASSERT_NE(at, std::string::npos);
    ++at;
  }
  EXPECT_EQ(page.substr(at), "");
}

TEST(Conformance, SummaryLine) {
  Conformance table;
  table.cases = 4386;
  table.agreed = 4385;
  table.rejected = 2305;
  table.named = 2301;
  EXPECT_EQ(summary_line(table), "agreement 99.97 % (4385/4386), first reason named 99.8 % (2301/2305)");
  table.cases = 1000000;
  table.agreed = 999999;
  EXPECT_EQ(
      summary_line(table),
      "agreement 99.99 % (999999/1000000), first reason named 99.8 % (2301/2305)");  // never 100 for less
}

TEST(Conformance, StackFromTheFileName) {
  const auto name_of = [](const char* path) {
    const auto stack = stack_of_table(path, builtin_schema());
    return stack ? stack->name : "";
  };
  EXPECT_EQ(name_of("some/where/verdicts-bridge-0.2.1.jsonl"), "bridge-0.2");
  EXPECT_EQ(name_of("verdicts-core-head.jsonl"), "core-head");
  EXPECT_EQ(name_of("verdicts-megatron-lm-0.17.0.jsonl"), "megatron-lm-0.17");
  EXPECT_EQ(name_of("verdicts-bridge-9.9.jsonl"), "");
  EXPECT_EQ(name_of("table.jsonl"), "");
}

}  // namespace
}  // namespace capstan
