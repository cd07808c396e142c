#include "grammar/override/override_parser.h"

#include <gtest/gtest.h>

#include <string>

namespace capstan {
namespace {

struct Parsed {
  SourceMap sources;
  SyntaxProblem problem;
  std::optional<Override> override;

  explicit Parsed(std::string text, OverrideMode mode = OverrideMode::single) {
    const SourceId id = sources.add("--set", std::move(text), SourceKind::override_argument);
    override = parse_override(id, sources, mode, problem);
  }
  std::string text(Span span) const { return std::string(sources.text(span)); }
};

Value value_of(std::string text) {
  const Parsed parsed("k=" + std::move(text));
  EXPECT_TRUE(parsed.override) << parsed.problem.message;
  return parsed.override ? to_value(parsed.override->value) : Value("no value");
}

TEST(OverrideParser, ReadsKindsAndPaths) {
  EXPECT_EQ(Parsed("a=1").override->kind, Override::Kind::set);
  EXPECT_EQ(Parsed("+a=1").override->kind, Override::Kind::add);
  EXPECT_EQ(Parsed("++a=1").override->kind, Override::Kind::force_add);
  EXPECT_EQ(Parsed("~a").override->kind, Override::Kind::remove);
  const Parsed parsed(" ++model.cuda_graph_impl = local ");
  ASSERT_TRUE(parsed.override);
  EXPECT_EQ(parsed.override->path, (std::vector<std::string>{"model", "cuda_graph_impl"}));
  EXPECT_EQ(parsed.override->key_span, (Span{0, 3, 24}));
  EXPECT_EQ(parsed.override->value.span, (Span{0, 27, 32}));
  EXPECT_EQ(parsed.override->value.scalar, Value("local"));
}

// Types as the Hydra documentation lists them under "basic override syntax", plus `None`.
TEST(OverrideParser, TypesUnquotedValues) {
  EXPECT_EQ(value_of("null"), Value());
  EXPECT_EQ(value_of("NULL"), Value());
  EXPECT_EQ(value_of("None"), Value());
  EXPECT_EQ(value_of("True"), Value(true));
  EXPECT_EQ(value_of("false"), Value(false));
  EXPECT_EQ(value_of("-12"), Value(-12));
  EXPECT_EQ(value_of("+12"), Value(12));
  EXPECT_EQ(value_of("1_000"), Value(1000));
  EXPECT_EQ(value_of("012"), Value("012"));
  EXPECT_EQ(value_of("1."), Value(1.0));
  EXPECT_EQ(value_of(".5"), Value(0.5));
  EXPECT_EQ(value_of("-.5"), Value(-0.5));
  EXPECT_EQ(value_of("1e-4"), Value(1e-4));
  EXPECT_EQ(value_of("1e"), Value("1e"));
  EXPECT_EQ(to_text(value_of("-inf")), "-inf");
  EXPECT_EQ(to_text(value_of("nan")), "nan");
  EXPECT_EQ(value_of("1_"), Value("1_"));
  EXPECT_EQ(value_of("1.2.3"), Value("1.2.3"));
  EXPECT_EQ(value_of("/data/x-1_y.bin"), Value("/data/x-1_y.bin"));
  EXPECT_EQ(value_of("expandable_segments:True"), Value("expandable_segments:True"));
  EXPECT_EQ(value_of("two words"), Value("two words"));
  EXPECT_EQ(value_of(""), Value(""));
  EXPECT_EQ(value_of("9223372036854775807"), Value(std::int64_t{9223372036854775807}));
}

TEST(OverrideParser, QuotesAndEscapes) {
  EXPECT_EQ(value_of("'1'"), Value("1"));
  EXPECT_EQ(value_of("\"a,b=c\""), Value("a,b=c"));
  EXPECT_EQ(value_of("'it\\'s'"), Value("it's"));
  EXPECT_EQ(value_of("'a\\nb'"), Value("a\\nb"));
  EXPECT_EQ(value_of("a\\,b\\=c"), Value("a,b=c"));
  EXPECT_EQ(value_of("1\\ "), Value("1 "));
}

TEST(OverrideParser, ReadsListsAndDictsWithPlaces) {
  const Parsed parsed("k=[attn, 'mlp', [1,2], {a: 1, 'b c': [x:y]}, []]");
  ASSERT_TRUE(parsed.override) << parsed.problem.message;
  const SyntaxNode& node = parsed.override->value;
  EXPECT_EQ(to_text(to_value(node)), "[\"attn\", \"mlp\", [1, 2], { a = 1, \"b c\" = [\"x:y\"] }, []]");
  EXPECT_EQ(node.span, (Span{0, 2, 48}));
  EXPECT_EQ(parsed.text(node.items[1].span), "'mlp'");
  EXPECT_EQ(parsed.text(node.items[2].span), "[1,2]");
  EXPECT_EQ(parsed.text(node.items[3].entries[1].key_span), "'b c'");
  EXPECT_EQ(parsed.text(node.items[3].entries[1].value.span), "[x:y]");
  EXPECT_EQ(parsed.text(node.items[4].span), "[]");
  EXPECT_EQ(value_of("{}"), Value(Value::Table{}));
}

std::string choices(const std::string& text) {
  const Parsed parsed(text, OverrideMode::sweep);
  if (!parsed.override) return "problem: " + parsed.problem.message;
  std::string out;
  for (const SyntaxNode& node : parsed.override->choices) out += to_text(to_value(node)) + ";";
  return out;
}

TEST(OverrideParser, ReadsSweeps) {
  EXPECT_EQ(choices("k=1,2,four"), "1;2;\"four\";");
  EXPECT_EQ(choices("k=[1,2],[3]"), "[1, 2];[3];");
  EXPECT_EQ(choices("k=choice(a, 'b')"), "\"a\";\"b\";");
  EXPECT_EQ(choices("k=choice(a)"), "\"a\";");
  EXPECT_EQ(choices("k=range(1,9,2)"), "1;3;5;7;");
  EXPECT_EQ(choices("k=range(3)"), "0;1;2;");
  EXPECT_EQ(choices("k=range(3,0,-1)"), "3;2;1;");
  EXPECT_EQ(choices("k=range(0,1,0.25)"), "0.0;0.25;0.5;0.75;");
  EXPECT_EQ(choices("k=5"), "");
  EXPECT_EQ(choices("k=range(0,20000)"), "problem: `range` gives more than 10000 values");
  EXPECT_EQ(choices("k=range(9223372036854775806,9223372036854775807,1)"), "9223372036854775806;");
  EXPECT_EQ(choices("k=range(1,2,0)"), "problem: the step of `range` is zero");
  EXPECT_EQ(choices("k=range(a)"), "problem: `range` takes numbers");
  EXPECT_EQ(choices("k=glob(*)"),
            "problem: `glob(...)` is not read; only `choice` and `range` are, in sweeps");
}

struct BadOverride {
  const char* text;
  std::uint32_t begin, end;
  const char* message;
};

class OverrideProblem : public testing::TestWithParam<BadOverride> {};

TEST_P(OverrideProblem, IsShownAtItsPlace) {
  const Parsed parsed(GetParam().text);
  ASSERT_FALSE(parsed.override);
  EXPECT_EQ(parsed.problem.message, GetParam().message);
  EXPECT_EQ(parsed.problem.where, (Span{0, GetParam().begin, GetParam().end}));
}

INSTANTIATE_TEST_SUITE_P(
    Places, OverrideProblem,
    testing::Values(
        BadOverride{"", 0, 0, "an override begins with a key, as in `model.key=value`"},
        BadOverride{"=3", 0, 1, "an override begins with a key, as in `model.key=value`"},
        BadOverride{"model.x", 7, 7, "`=` and a value must follow the key"},
        BadOverride{"model..x=1", 6, 7, "a part of the key is empty"},
        BadOverride{"model.=1", 6, 7, "a part of the key is empty"},
        BadOverride{"a/b=1", 1, 2, "`/` cannot stand in a key"},
        BadOverride{"a@b=1", 1, 2, "`@` cannot stand in a key"},
        BadOverride{"~a=1", 2, 4, "`~` takes a key alone; it removes the key whatever its value is"},
        BadOverride{"a=1,2", 2, 5, "several values stand where one is needed; a list is written `[a,b]`"},
        BadOverride{"a=choice(1,2)", 2, 13, "a sweep stands where one value is needed"},
        BadOverride{"a=[1,2", 6, 6, "expected `]`, found the end"},
        BadOverride{"a=[1,,2]", 5, 6, "expected a value, found `,`"},
        BadOverride{"a={x 1}", 6, 7, "expected `:`, found `}`"},
        BadOverride{"a={x:1,x:2}", 7, 8, "`x` stands twice in this dict"},
        BadOverride{"a='x", 4, 4, "expected `'`, found the end"},
        BadOverride{"a=b=c", 3, 4, "`=` must be quoted or escaped in a value"},
        BadOverride{"a=1]", 3, 4, "`]` must be quoted or escaped in a value"},
        BadOverride{"a=${b}", 2, 4, "interpolations (`${...}`) are not resolved; write the value"},
        BadOverride{"a=99999999999999999999", 2, 22, "`99999999999999999999` does not fit in 64 bits"},
        BadOverride{"a=1e999", 2, 7, "`1e999` is out of range for a float"}));

TEST(OverrideParser, NestingIsBounded) {
  EXPECT_TRUE(Parsed("a=" + std::string(32, '[') + std::string(32, ']')).override);
  const Parsed deep("a=" + std::string(100000, '[') + std::string(100000, ']'));
  ASSERT_FALSE(deep.override);
  EXPECT_EQ(deep.problem.message, "nesting is deeper than 32 levels");
  EXPECT_EQ(deep.problem.where, (Span{0, 34, 35}));
}

}  // namespace
}  // namespace capstan
