#include "compiler/ruleset/rule_set_binary.h"

#include <gtest/gtest.h>

#include "compiler/embed/embedded.h"
#include "compiler/ruleset/resolve.h"

namespace capstan {
namespace {

// What the program carries resolved is what it would resolve from the files that it carries parsed.
TEST(RuleSetBinary, CarriedRulesAreTheCarriedFilesResolved) {
  Sink sink;
  const RuleSet resolved = resolve(builtin_rule_files(), builtin_phases(), builtin_schema(), sink);
  EXPECT_FALSE(sink.has_errors());
  EXPECT_EQ(encode_rule_set(resolved), embedded_rule_set());
}

TEST(RuleSetBinary, DecodedRulesEncodeToTheSameBytes) {
  const std::optional<RuleSet> decoded = decode_rule_set(embedded_rule_set());
  ASSERT_TRUE(decoded);
  EXPECT_GT(decoded->items.size(), 300u);
  EXPECT_EQ(decoded->phases, builtin_phases());
  EXPECT_EQ(encode_rule_set(*decoded), embedded_rule_set());
}

TEST(RuleSetBinary, DamagedBytesAreRefused) {
  const std::string bytes(embedded_rule_set());
  for (std::size_t size = 0; size < bytes.size(); size += 1 + bytes.size() / 200)
    EXPECT_FALSE(decode_rule_set(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_rule_set(bytes + "x"));
  EXPECT_FALSE(decode_rule_set(std::string(64, '\xff')));
}

}  // namespace
}  // namespace capstan
