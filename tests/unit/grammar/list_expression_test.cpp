#include <gtest/gtest.h>

#include <string>

#include "grammar/arguments/list_expression.h"

namespace capstan {
namespace {

std::string value(const std::string& text) {
  const auto list = evaluate_list_expression(text);
  if (!list) return "none";
  std::string out;
  for (const std::int64_t item : *list) out += std::to_string(item) + ",";
  return "[" + out + "]";
}

// What Python makes of the same texts.
TEST(ListExpression, IsWhatPythonMakesOfIt) {
  EXPECT_EQ(value("([0]*3+[1]*2)"), "[0,0,0,1,1,]");
  EXPECT_EQ(value("([1]*2+[0])*2"), "[1,1,0,1,1,0,]");
  EXPECT_EQ(value("[0] * 1 + [1]\n * (1 + 1)"), "[0,1,1,]");
  EXPECT_EQ(value("2*[7]"), "[7,7,]");
  EXPECT_EQ(value("[1, 2*3, 4+5,]"), "[1,6,9,]");
  EXPECT_EQ(value("[]+[-1]*0"), "[]");
  EXPECT_EQ(value("[1]*-2"), "[]");
}

TEST(ListExpression, OtherTextsAreNone) {
  for (const char* text :
       {"", "1", "1+2", "[1", "[1]]", "[1]+2", "[1]*[1]", "[[1]]", "[1 2]", "[,]", "[1.5]", "[a]", "[1]*",
        "(1)", "[1]-[1]", "[9223372036854775807+1]", "[9223372036854775807*2]"})
    EXPECT_EQ(value(text), "none") << text;
}

TEST(ListExpression, IsBounded) {
  EXPECT_EQ(evaluate_list_expression("[1]*10000")->size(), 10000u);
  EXPECT_EQ(value("[1]*10001"), "none");
  EXPECT_EQ(value("[1]*9223372036854775807"), "none");
  EXPECT_EQ(value("[1]*5000+[1]*5001"), "none");
  EXPECT_EQ(value(std::string(100000, '(')), "none");
  EXPECT_EQ(value(std::string(40, '(') + "[1]" + std::string(40, ')')), "none");
  EXPECT_EQ(value(std::string(20, '(') + "[1]" + std::string(20, ')')), "[1,]");
}

}  // namespace
}  // namespace capstan
