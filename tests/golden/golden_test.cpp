// One test per section of the Markdown files below tests/golden.
#include <gtest/gtest.h>

#include "tests/support/golden_runner.h"

namespace capstan::test {
namespace {

class Golden : public testing::TestWithParam<GoldenSection> {};

TEST_P(Golden, OutputIsAsWritten) {
  const std::string problems = run_golden_section(GetParam());
  EXPECT_TRUE(problems.empty()) << GetParam().file << ", section \"" << GetParam().title
                                << "\": " << problems;
}

INSTANTIATE_TEST_SUITE_P(Files, Golden,
                         testing::ValuesIn(find_golden_sections(CAPSTAN_SOURCE_DIR "/tests/golden")),
                         [](const auto& section) { return section.param.name; });

}  // namespace
}  // namespace capstan::test
