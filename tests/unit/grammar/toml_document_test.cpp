#include "grammar/toml/toml_document.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>

namespace capstan {
namespace {

struct ParsedToml {
  SourceMap sources;
  SyntaxProblem problem;
  std::optional<SyntaxNode> tree;

  explicit ParsedToml(std::string text) {
    const SourceId id = sources.add("test.toml", std::move(text), SourceKind::file);
    tree = parse_toml(id, sources, problem);
  }
  std::string text(Span span) const { return std::string(sources.text(span)); }
  /// "line:column `text` message" of the problem.
  std::string shown() const {
    const LineColumn place = sources[0].locate(problem.where.begin);
    return std::to_string(place.line) + ":" + std::to_string(place.column) + " `" + text(problem.where) +
           "` " + problem.message;
  }
  const SyntaxEntry& entry(std::initializer_list<std::string_view> path) const {
    const SyntaxNode* table = &*tree;
    const SyntaxEntry* found = nullptr;
    for (const std::string_view key : path) {
      found = nullptr;
      for (const SyntaxEntry& candidate : table->entries) {
        if (candidate.key == key) found = &candidate;
      }
      if (found == nullptr) throw std::out_of_range(std::string(key));
      table = &found->value;
    }
    return *found;
  }
};

TEST(TomlDocument, GivesExactByteSpansOfKeysAndValues) {
  const ParsedToml parsed("[model] # é\nname = \"ü\" # c\nsizes = [ 1, 20,\n  3 ]\n");
  ASSERT_TRUE(parsed.tree);
  const SyntaxEntry& name = parsed.entry({"model", "name"});
  EXPECT_EQ(name.key_span, (Span{0, 13, 17}));
  EXPECT_EQ(name.value.span, (Span{0, 20, 24}));  // two quotes and two bytes of ü
  EXPECT_EQ(name.value.scalar, Value("ü"));
  const SyntaxEntry& sizes = parsed.entry({"model", "sizes"});
  EXPECT_EQ(parsed.text(sizes.key_span), "sizes");
  EXPECT_EQ(parsed.text(sizes.value.span), "[ 1, 20,\n  3 ]");
  ASSERT_EQ(sizes.value.items.size(), 3u);
  EXPECT_EQ(parsed.text(sizes.value.items[1].span), "20");
  EXPECT_EQ(parsed.text(sizes.value.items[2].span), "3");
  EXPECT_EQ(parsed.text(parsed.entry({"model"}).value.span), "[model]");
  EXPECT_EQ(parsed.text(parsed.entry({"model"}).key_span), "model");
}

TEST(TomlDocument, KeepsTheOrderOfTheText) {
  const ParsedToml parsed("zebra = 1\napple = 2\n[b]\n[a]\nz = 1\na = { y = 1, x = 2 }\n");
  ASSERT_TRUE(parsed.tree);
  std::string order;
  for (const SyntaxEntry& entry : parsed.tree->entries) order += entry.key + " ";
  EXPECT_EQ(order, "zebra apple b a ");
  EXPECT_EQ(parsed.entry({"a"}).value.entries[0].key, "z");
  EXPECT_EQ(parsed.entry({"a", "a"}).value.entries[0].key, "y");
}

TEST(TomlDocument, PlacesDottedKeysHeadersAndArraysOfTables) {
  const ParsedToml parsed("[[run]]\nx.y = 1\n[[run]]\n[run.\"a ]b\".c] # h\nk = 2\n");
  ASSERT_TRUE(parsed.tree);
  const SyntaxNode& runs = parsed.entry({"run"}).value;
  ASSERT_EQ(runs.kind, SyntaxNode::Kind::list);
  ASSERT_EQ(runs.items.size(), 2u);
  EXPECT_EQ(runs.items[1].span, (Span{0, 16, 23}));
  const SyntaxEntry& x = runs.items[0].entries[0];
  EXPECT_EQ(x.key, "x");
  EXPECT_EQ(x.value.kind, SyntaxNode::Kind::table);
  EXPECT_EQ(parsed.text(x.value.span), "x");
  EXPECT_EQ(parsed.text(x.value.entries[0].key_span), "y");
  const SyntaxEntry& quoted = runs.items[1].entries[0];
  EXPECT_EQ(quoted.key, "a ]b");
  EXPECT_EQ(parsed.text(quoted.key_span), "\"a ]b\"");
  EXPECT_EQ(parsed.text(quoted.value.span), "[run.\"a ]b\".c]");
}

TEST(TomlDocument, TypesScalars) {
  const ParsedToml parsed("a = 1\nb = 1.0\nc = true\nd = 'x'\ne = 0x10\nf = -inf\ng = 1_000\nh = 1e3\n");
  ASSERT_TRUE(parsed.tree);
  EXPECT_EQ(parsed.entry({"a"}).value.scalar, Value(1));
  EXPECT_EQ(parsed.entry({"b"}).value.scalar, Value(1.0));
  EXPECT_EQ(parsed.entry({"c"}).value.scalar, Value(true));
  EXPECT_EQ(parsed.entry({"d"}).value.scalar, Value("x"));
  EXPECT_EQ(parsed.entry({"e"}).value.scalar, Value(16));
  EXPECT_EQ(to_text(parsed.entry({"f"}).value.scalar), "-inf");
  EXPECT_EQ(parsed.entry({"g"}).value.scalar, Value(1000));
  EXPECT_EQ(parsed.entry({"h"}).value.scalar, Value(1000.0));
  EXPECT_EQ(parsed.text(parsed.entry({"h"}).value.span), "1e3");
}

TEST(TomlDocument, DatesAreUnsupportedNodesWithTheirPlace) {
  const ParsedToml parsed("a = 1979-05-27\nb = 07:32:00 # t\nc = 1979-05-27T07:32:00Z\n");
  ASSERT_TRUE(parsed.tree);
  EXPECT_EQ(parsed.entry({"a"}).value.kind, SyntaxNode::Kind::unsupported);
  EXPECT_EQ(parsed.entry({"a"}).value.what, "date");
  EXPECT_EQ(parsed.entry({"b"}).value.what, "time");
  EXPECT_EQ(parsed.entry({"c"}).value.what, "date-time");
  EXPECT_EQ(parsed.text(parsed.entry({"b"}).value.span), "07:32:00");
}

TEST(TomlDocument, ByteOrderMarkAndCarriageReturnsKeepPlacesExact) {
  const ParsedToml parsed(
      "\xEF\xBB\xBF"
      "a = 1\r\nb = \"x\"\r\n");
  ASSERT_TRUE(parsed.tree);
  EXPECT_EQ(parsed.entry({"a"}).key_span, (Span{0, 3, 4}));
  EXPECT_EQ(parsed.entry({"b"}).value.span, (Span{0, 14, 17}));
}

TEST(TomlDocument, EmptyTextsAreEmptyTables) {
  for (const char* text : {"", "\n", "# only a comment", "\xEF\xBB\xBF"}) {
    const ParsedToml parsed(text);
    ASSERT_TRUE(parsed.tree) << text;
    EXPECT_TRUE(parsed.tree->entries.empty());
  }
}

struct BadText {
  const char* text;
  const char* shown;
};

class TomlProblem : public testing::TestWithParam<BadText> {};

TEST_P(TomlProblem, IsShownAtItsPlace) {
  const ParsedToml parsed(GetParam().text);
  ASSERT_FALSE(parsed.tree);
  EXPECT_EQ(parsed.shown(), GetParam().shown);
}

INSTANTIATE_TEST_SUITE_P(
    Places, TomlProblem,
    testing::Values(
        BadText{"a = 1\nab = 2\na = 3\n", "3:1 `a` `a` is already defined"},
        BadText{"x = { \"é\" = 1, \"b\" = 2, \"b\" = 3 }", "1:25 `\"b\"` `\"b\"` is already defined"},
        BadText{"a = { b = 1 }\na.c = 2",
                "2:1 `a.c` `a.c` extends a value or table that is already complete"},
        BadText{"[a]\n[b]\n[ a ] # again\n", "3:1 `[ a ]` `[ a ]` is already defined"},
        BadText{"big = 99999999999999999999",
                "1:7 `99999999999999999999` `99999999999999999999` is not representable in 64 bits"},
        BadText{"a = 012", "1:5 `012` leading zeroes are prohibited"},
        BadText{"a = \nb = 1", "1:5 `\n` expected value, found the end of the line"},
        BadText{"a", "1:2 `` the text ends too early"},
        BadText{"[a\nb = 1", "1:3 `\n` expected `]`, found the end of the line"},
        BadText{"ü = 1", "1:1 `ü` `ü` can stand only in a string or a comment; quote it"},
        // toml++ must not see these: undefined behaviour of its table of blanks.
        BadText{"[a\n é = 1", "2:2 `é` `é` can stand only in a string or a comment; quote it"},
        BadText{"a = 1 é", "1:7 `é` `é` can stand only in a string or a comment; quote it"},
        BadText{"a = \"\"\"x\\\n  é\"\"\"", "2:3 `é` `é` can stand only in a string or a comment; quote it"},
        BadText{"\ta = 1 2", "1:8 `2` expected a comment or whitespace, found `2`"},
        BadText{"a = \"é\\q\"", "1:8 `q` unknown escape sequence `\\q`"},
        BadText{"a = \"x\nb = 1", "1:5 `\"x` the string is not closed"},
        BadText{"b = 'ok'\na = \"\"\"x\ny", "2:5 `\"\"\"x\ny` the string is not closed"},
        BadText{"a = [1, 2\nb = 3", "2:1 `b` expected comma or closing `]`, found `b`"},
        BadText{"a = \"x\xff\"", "1:7 `\xff` byte 0xFF is no valid UTF-8 here"},
        BadText{"a = \"\xed\xa0\x80\"", "1:6 `\xed` byte 0xED is no valid UTF-8 here"}));

TEST(TomlDocument, NulBytesAreNamed) {
  const ParsedToml parsed(std::string("a = 1\nb\0 = 2", 12));
  ASSERT_FALSE(parsed.tree);
  EXPECT_EQ(parsed.problem.where, (Span{0, 7, 8}));
  EXPECT_EQ(parsed.problem.message, "a NUL byte stands in the text; this looks like a binary file");
}

TEST(TomlDocument, NestingIsBounded) {
  const auto nested = [](std::size_t depth) {
    return "a = " + std::string(depth, '[') + "1" + std::string(depth, ']');
  };
  EXPECT_TRUE(ParsedToml(nested(64)).tree);
  const ParsedToml deep(nested(65));
  ASSERT_FALSE(deep.tree);
  EXPECT_EQ(deep.problem.message, "nesting is deeper than 64 levels");
  EXPECT_EQ(deep.problem.where, (Span{0, 4 + 64, 4 + 65}));
  EXPECT_FALSE(ParsedToml(nested(1000000)).tree);

  std::string dotted = "a";
  for (int i = 0; i < 63; ++i) dotted += ".a";
  EXPECT_TRUE(ParsedToml(dotted + " = 1.5").tree);
  EXPECT_FALSE(ParsedToml(dotted + ".a = 1").tree);
  EXPECT_TRUE(ParsedToml("[" + dotted + "]\n").tree);
  EXPECT_FALSE(ParsedToml("[" + dotted + "]\nx.y = 1").tree);
  EXPECT_FALSE(ParsedToml("x = { " + dotted + " = 1 }").tree);
  EXPECT_TRUE(ParsedToml("x = [" +
                         [] {
                           std::string many;
                           for (int i = 0; i < 200; ++i) many += "[1.5, 2.5], {a.b = 1.5},";
                           return many;
                         }() +
                         "]")
                  .tree);
}

TEST(TomlDocument, ReadsLargeTextsInTime) {
  // Ten megabytes in the shapes that would be quadratic in a naive reader: many lines, one long ASCII line,
  // one long line with wide characters, very many tables (refused).
  const auto started = std::chrono::steady_clock::now();
  std::string lines = "[a]\n";
  for (int i = 0; lines.size() < (10u << 20); ++i)
    lines += "key_" + std::to_string(i) + " = \"some value\"\n";
  EXPECT_TRUE(ParsedToml(lines).tree);
  std::string ascii = "a = [";
  while (ascii.size() < (10u << 20)) ascii += "\"some value\", ";
  EXPECT_TRUE(ParsedToml(ascii + "]").tree);
  std::string wide = "a = [";
  while (wide.size() < (4u << 20)) wide += "\"sömé välüé\", ";
  const ParsedToml parsed(wide + "17]");
  ASSERT_TRUE(parsed.tree);
  EXPECT_EQ(parsed.text(parsed.entry({"a"}).value.items.back().span), "17");
  std::string tables;
  for (int i = 0; tables.size() < (10u << 20); ++i) tables += "a" + std::to_string(i) + ".b = 1\n";
  const ParsedToml refused(tables);
  ASSERT_FALSE(refused.tree);
  EXPECT_EQ(refused.problem.message, "the text has more than 20000 tables");
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(120));
}

}  // namespace
}  // namespace capstan
