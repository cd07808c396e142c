#include "grammar/toml/toml_comments.h"

#include <gtest/gtest.h>

#include <string>

namespace capstan {
namespace {

/// "line[alone]:text|" for each comment.
std::string shown(std::string text) {
  SourceMap sources;
  const SourceId id = sources.add("test.toml", std::move(text), SourceKind::file);
  std::string out;
  for (const Comment& comment : find_toml_comments(id, sources)) {
    out += std::to_string(comment.line) + (comment.alone ? "!" : "") + ":" +
           std::string(sources.text(comment.span)) + "|";
  }
  return out;
}

TEST(TomlComments, StandAloneOrBehindAValue) {
  EXPECT_EQ(shown("# one\n  # two\na = 1 # three\n\n[t] # four"), "1!:# one|2!:# two|3:# three|5:# four|");
}

TEST(TomlComments, AreNotInStrings) {
  EXPECT_EQ(shown("a = \"# no\" # yes\nb = '# no' # yes\nc = \"\\\"# no\" # yes\n"),
            "1:# yes|2:# yes|3:# yes|");
  EXPECT_EQ(shown("a = \"\"\"\n# no\n\\\"\"\"# no\n\"\"\" # yes\n"), "4:# yes|");
  EXPECT_EQ(shown("a = '''\n# no\n''''' # yes\n"), "3:# yes|");
  EXPECT_EQ(shown("a = \"\" # yes\nb = '' # yes"), "1:# yes|2:# yes|");
  EXPECT_EQ(shown("\"a # no\" = 1 # yes\n[\"x # no\"] # yes\n"), "1:# yes|2:# yes|");
}

TEST(TomlComments, StandInsideLists) {
  EXPECT_EQ(shown("a = [ # one\n  1, # two\n]\n"), "1:# one|2:# two|");
}

TEST(TomlComments, EndBeforeTheLineEnding) {
  EXPECT_EQ(shown("a = 1 # x\r\n# y\r\n"), "1:# x|2!:# y|");
}

TEST(TomlComments, AnUnclosedStringHidesOnlyItsLine) {
  EXPECT_EQ(shown("a = \"x # no\nb = 1 # yes\n"), "2:# yes|");
}

TEST(TomlComments, AByteOrderMarkIsBlank) {
  EXPECT_EQ(shown("\xEF\xBB\xBF# x\n"), "1!:# x|");
}

}  // namespace
}  // namespace capstan
