#include "grammar/yaml/yaml_document.h"
#include "grammar/yaml/yaml_comments.h"

#include <gtest/gtest.h>

#include <string>

namespace capstan {
namespace {

struct ParsedYaml {
  SourceMap sources;
  SyntaxProblem problem;
  std::vector<SyntaxProblem> duplicates;
  std::optional<SyntaxNode> tree;

  explicit ParsedYaml(std::string text, bool keep_duplicates = false) {
    const SourceId id = sources.add("test.yaml", std::move(text), SourceKind::file);
    tree = parse_yaml(id, sources, problem, keep_duplicates ? &duplicates : nullptr);
  }
  std::string text(Span span) const { return std::string(sources.text(span)); }
  std::string value() const { return tree ? to_text(to_value(*tree)) : "problem: " + problem.message; }
  std::string shown() const {
    const LineColumn place = sources[0].locate(problem.where.begin);
    return std::to_string(place.line) + ":" + std::to_string(place.column) + " " + problem.message;
  }
};

TEST(YamlDocument, GivesExactPlaces) {
  const ParsedYaml parsed("a:\n  \xC3\xA9: \"x\\\"y\" # c\n  'b': [1, 'two', {c: d}]\n");
  ASSERT_TRUE(parsed.tree);
  const SyntaxNode& a = parsed.tree->entries[0].value;
  EXPECT_EQ(a.entries[0].key_span, (Span{0, 5, 7}));
  EXPECT_EQ(parsed.text(a.entries[0].value.span), "\"x\\\"y\"");
  EXPECT_EQ(a.entries[0].value.scalar, Value("x\"y"));
  EXPECT_EQ(parsed.text(a.entries[1].key_span), "'b'");
  const SyntaxNode& list = a.entries[1].value;
  EXPECT_EQ(parsed.text(list.span), "[1, 'two', {c: d}]");
  EXPECT_EQ(parsed.text(list.items[1].span), "'two'");
  EXPECT_EQ(parsed.text(list.items[2].span), "{c: d}");
}

TEST(YamlDocument, TypesPlainScalarsByTheCoreSchema) {
  EXPECT_EQ(
      ParsedYaml(
          "[1, -2, 0x1F, 0o17, 1.5, 1e-4, .5, true, False, null, ~, text, '1', \"true\", 1_000, 1.2.3, -]")
          .value(),
      "[1, -2, 31, 15, 1.5, 0.0001, 0.5, true, false, none, none, \"text\", \"1\", \"true\", \"1_000\", "
      "\"1.2.3\", \"-\"]");
  EXPECT_EQ(ParsedYaml("[.inf, -.inf, .nan]").value(), "[inf, -inf, nan]");
  EXPECT_EQ(ParsedYaml("a:\nb: 99999999999999999999\n").value(), "{ a = none, b = 1e+20 }");
  EXPECT_EQ(ParsedYaml("a: !!str 5").value(), "{ a = \"5\" }");
}

/// Expected values: PyYAML 6.0.3 with the float pattern that OmegaConf puts into its loader.
TEST(YamlScalars, AreWhatPythonsLoadersMakeOfThem) {
  const auto typed = [](const std::string& text) {
    return to_text(typed_yaml_scalar(text, YamlScalars::python));
  };
  for (const char* const text : {"yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"})
    EXPECT_EQ(typed(text), "true") << text;
  for (const char* const text : {"no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"})
    EXPECT_EQ(typed(text), "false") << text;
  for (const char* const text : {"", "~", "null", "Null", "NULL"}) EXPECT_EQ(typed(text), "none") << text;
  const std::pair<const char*, const char*> numbers[] = {
      {"010", "8"},         {"-010", "-8"},        {"0", "0"},
      {"00", "0"},          {"+12", "12"},         {"0x1F", "31"},
      {"-0x1f", "-31"},     {"0x_1", "1"},         {"0b101", "5"},
      {"1_024", "1024"},    {"12:30:00", "45000"}, {"1:30", "90"},
      {"-1:30", "-90"},     {"1:5", "65"},         {"190:20:30.15", "685230.15"},
      {"1e-5", "1e-05"},    {"1E5", "100000.0"},   {"1.0e5", "100000.0"},
      {"1.e5", "100000.0"}, {"1.", "1.0"},         {".5", "0.5"},
      {".5e-3", "0.0005"},  {".inf", "inf"},       {"-.inf", "-inf"},
      {"+.Inf", "inf"},     {".nan", "nan"},       {"1_000.5", "1000.5"},
      {"007.5", "7.5"},     {"0:30.", "30.0"},     {"1e400", "inf"}};
  for (const auto& [text, value] : numbers) EXPECT_EQ(typed(text), value) << text;
  for (const char* const text : {"yEs", "y",    "N",    "tRue", "nULL",  "None", "none",  "0o10",  "08",
                                 "09",  "0X1F", "_1",   "-.5",  "+.5",   ".5e3", "5e",    "1.5.2", ".iNf",
                                 "nan", "inf",  "1:60", "0:30", "08:30", "0b12", "1,000", "1-2",   "."})
    EXPECT_EQ(typed(text), to_text(Value(text))) << text;
}

TEST(YamlScalars, SafeLoadTakesSomeNumbersForText) {
  for (const char* const text : {"1e-5", "1E5", "1.0e5", "1.e5", "12e03", "1e+5", "-1e-5"})
    EXPECT_TRUE(is_text_for_safe_load(text)) << text;
  for (const char* const text :
       {"1.0e-5", "1.0E+5", ".5", ".5e-3", "1.", "1_0.5", "12", "0x1e5", ".inf", "text", "1:30", ""})
    EXPECT_FALSE(is_text_for_safe_load(text)) << text;
}

TEST(YamlDocument, CopiesAnchorsAndMerges) {
  EXPECT_EQ(ParsedYaml("x: &A {p: 1, q: 2}\ny:\n  q: 3\n  <<: *A\nz: *A\n").value(),
            "{ x = { p = 1, q = 2 }, y = { q = 3, p = 1 }, z = { p = 1, q = 2 } }");
  EXPECT_EQ(ParsedYaml("a: &A {p: 1}\nb: &B {p: 2, r: 3}\nc:\n  <<: [*A, *B]\n").value(),
            "{ a = { p = 1 }, b = { p = 2, r = 3 }, c = { p = 1, r = 3 } }");
}

TEST(YamlDocument, EmptyTextsAreEmptyTables) {
  for (const char* text : {"", "\n", "# c\n"}) EXPECT_EQ(ParsedYaml(text).value(), "{}") << text;
}

TEST(YamlDocument, ReportsProblemsAtTheirPlace) {
  EXPECT_EQ(ParsedYaml("a: 1\nb: 2\na: 3\n").shown(), "3:1 the key `a` stands twice in this mapping");
  EXPECT_EQ(ParsedYaml("a:\n\tb: 1\n").shown(),
            "2:1 a tab stands in the indentation; YAML allows blanks only");
  EXPECT_EQ(ParsedYaml("a: b: c").shown(), "1:5 illegal map value");
  EXPECT_EQ(ParsedYaml("a: 1\n---\nb: 2\n").shown(), "2:1 a second document begins here; one is read");
  EXPECT_EQ(ParsedYaml("? [a]\n: b").shown(), "1:3 a key must be a scalar");
  EXPECT_EQ(ParsedYaml("a: &x [*x]").shown(), "1:8 the alias stands inside its own anchor");
  EXPECT_EQ(ParsedYaml("a: {<<: 3}").shown(), "1:5 `<<` merges a mapping or a list of mappings");
  EXPECT_EQ(ParsedYaml(std::string("a: b\0c", 6)).shown(),
            "1:5 a NUL byte stands in the text; this looks like a binary file");
  EXPECT_FALSE(ParsedYaml("a: [1, 2").tree);
  EXPECT_FALSE(ParsedYaml("a: \"x").tree);
  // A quote that the end of the text closes would swallow all that stands behind it.
  EXPECT_EQ(ParsedYaml("a: \"x\nb: 2\n").shown(), "1:4 the quote is not closed");
  EXPECT_EQ(ParsedYaml("a: 'it''s\n").shown(), "1:4 the quote is not closed");
  EXPECT_EQ(ParsedYaml("a: &x \"x\\\"\n").shown(), "1:7 the quote is not closed");
}

TEST(YamlDocument, TakesTabsBetweenBracketsAsJsonDoes) {
  EXPECT_EQ(ParsedYaml("{\n\t\"a\": 1,\n\t\"b\":\t[1,\t2]\n}\n").value(), "{ a = 1, b = [1, 2] }");
  EXPECT_EQ(ParsedYaml("\xEF\xBB\xBF\n{\r\n\t\"a\": 1\r\n}\r\n").value(), "{ a = 1 }");
}

TEST(YamlDocument, KeepsTheLastOfDuplicatesWhenAsked) {
  const ParsedYaml parsed("a: 1\nb: 2\na: 3\n", true);
  EXPECT_EQ(parsed.value(), "{ b = 2, a = 3 }");
  ASSERT_EQ(parsed.duplicates.size(), 1u);
  EXPECT_EQ(parsed.duplicates[0].where, (Span{0, 10, 11}));
}

TEST(YamlDocument, PlacesHoldBehindCarriageReturnsAndMarks) {
  const ParsedYaml parsed(
      "\xEF\xBB\xBF"
      "a:\r\n  b: \xE2\x82\xAC"
      " \r\n  c: 7\r\n");
  ASSERT_TRUE(parsed.tree) << parsed.shown();
  const SyntaxNode& a = parsed.tree->entries[0].value;
  EXPECT_EQ(parsed.text(parsed.tree->entries[0].key_span), "a");
  EXPECT_EQ(parsed.text(a.entries[0].value.span), "\xE2\x82\xAC");
  EXPECT_EQ(parsed.text(a.entries[1].key_span), "c");
  EXPECT_EQ(parsed.text(a.entries[1].value.span), "7");
}

TEST(YamlComments, StandOutsideOfScalars) {
  SourceMap sources;
  const SourceId id =
      sources.add("test.yaml",
                  "# one\r\na: \"x # no\" # two\nb: x#no\nc: |  # three\n  # no\n  text\n\n  # "
                  "no\nd:\n  - 'y # no'\n  # four\ne: >-\n  # no\n",
                  SourceKind::file);
  SyntaxProblem problem;
  const auto tree = parse_yaml(id, sources, problem);
  ASSERT_TRUE(tree) << problem.message;
  std::string found;
  for (const Comment& comment : find_yaml_comments(id, sources, *tree)) {
    found += std::to_string(comment.line) + (comment.alone ? "!" : " ") +
             std::string(sources.text(comment.span)) + ";";
  }
  EXPECT_EQ(found, "1!# one;2 # two;4 # three;11!# four;");
}

TEST(YamlDocument, NestingAndExpansionAreBounded) {
  EXPECT_TRUE(ParsedYaml(std::string(60, '[') + std::string(60, ']')).tree);
  EXPECT_EQ(ParsedYaml(std::string(100, '[') + std::string(100, ']')).shown(),
            "1:65 nesting is deeper than 64 levels");
  EXPECT_FALSE(ParsedYaml(std::string(100000, '[')).tree);
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int k = 0; k < 10; ++k) laughs += (k > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    laughs += "]\n";
  }
  const ParsedYaml bomb(laughs);
  ASSERT_FALSE(bomb.tree);
  EXPECT_EQ(bomb.problem.message, "the text expands to more than 500000 values");
}

}  // namespace
}  // namespace capstan
