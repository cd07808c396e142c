#include "grammar/source/comma_words.h"

#include <gtest/gtest.h>

namespace capstan {
namespace {

TEST(CommaWords, LeavesOutBlanksAroundWordsAndEmptyWords) {
  using Words = std::vector<std::string>;
  EXPECT_EQ(comma_words("attn,mlp"), (Words{"attn", "mlp"}));
  EXPECT_EQ(comma_words(" attn ,\tmoe router , ,mlp,"), (Words{"attn", "moe router", "mlp"}));
  EXPECT_EQ(comma_words(" , "), Words{});
  EXPECT_EQ(comma_words(""), Words{});
}

}  // namespace
}  // namespace capstan
