#include "compiler/schema/version.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace capstan {
namespace {

TEST(Version, OrdersAsPythonPackagingDoes) {
  const std::vector<std::string> ascending = {
      "0.14",   "0.16.0.dev0", "0.16.0a1",    "0.16.0b2", "0.16.0rc0", "0.16.0rc1", "0.16.0",
      "0.16.1", "0.17",        "0.20.0.dev0", "0.20.0",   "1.0.0",     "2.9.1",     "2.10"};
  for (std::size_t at = 1; at < ascending.size(); ++at) {
    const auto before = parse_version(ascending[at - 1]);
    const auto after = parse_version(ascending[at]);
    ASSERT_TRUE(before && after) << ascending[at];
    EXPECT_LT(*before, *after) << ascending[at - 1] << " " << ascending[at];
    EXPECT_LT(rank(*before), rank(*after)) << ascending[at - 1] << " " << ascending[at];
  }
}

TEST(Version, MissingPartsAreZero) {
  EXPECT_EQ(parse_version("2.10"), parse_version("2.10.0"));
  EXPECT_EQ(parse_version("2"), parse_version("2.0.0"));
}

TEST(Version, TakesTheFormsInUse) {
  EXPECT_EQ(parse_version("v0.4.2"), parse_version("0.4.2"));
  EXPECT_EQ(parse_version("2.9.0a0+git1234"), parse_version("2.9.0a0"));
  EXPECT_EQ(parse_version("2.6.0dev0"), parse_version("2.6.0.dev0"));
}

TEST(Version, RefusesWhatIsNone) {
  for (const char* text :
       {"", "v", "new", "1.", ".1", "1.2.3.4", "1.2x", "10000", "1.2.3rc1x", "1..2", "-1"}) {
    EXPECT_FALSE(parse_version(text)) << text;
  }
}

TEST(Version, PrintsWhatItReads) {
  for (const char* text : {"0.16.0rc0", "2.9.0a0", "0.20.0.dev0", "2.10.0", "1.2.3b4"}) {
    EXPECT_EQ(to_text(*parse_version(text)), text);
  }
}

}  // namespace
}  // namespace capstan
