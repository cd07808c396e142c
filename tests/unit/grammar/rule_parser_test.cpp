#include <gtest/gtest.h>

#include "grammar/rule/rule_binary.h"
#include "grammar/rule/rule_parser.h"
#include "grammar/rule/rule_printer.h"

namespace capstan {
namespace {

constexpr const char* kRule = R"(# the example of the documentation
rule CG004 graph-modules-moe-and-router {
  kind      rejects                       # rejects | breaks | advice
  severity  error
  enforcer  core
  frontends bridge, core
  applies   megatron-core >= 0.16 < 0.18, transformer-engine
  phase     core.graph 30
  when      model.cuda_graph_impl in {"local", "transformer_engine"}
  require   not ("moe" in graph.modules and "moe_router" in graph.modules)
  blame     model.cuda_graph_scope, model.cuda_graph_impl
  message   "CUDA graph modules `moe` and `moe_router` "
            "cover the same layer"
  why       "`moe` captures the whole expert layer, its router included"
  raises    "*must not contain both moe and moe_router*"
  fix unsafe speed "keep the router only" { remove "moe" from model.cuda_graph_scope }
  fix safe free "two steps" { set model.x = 3 + 4; unset model.y; add "a" to model.z; }
  source    "NVIDIA/Megatron-LM" "megatron/core/transformer/transformer_config.py" "TransformerConfig.__post_init__" seen "0.16.0..0.17.1"
  evidence  code 2026-08-22
  evidence  measured 2026-08-23 "says \"no\" \\ twice\n"
}
)";

struct ParsedRules {
  SourceMap sources;
  std::vector<RuleProblem> problems;
  std::optional<RuleFileSyntax> file;
};

ParsedRules parse(std::string text) {
  ParsedRules parsed;
  const SourceId source = parsed.sources.add("test.rule", std::move(text), SourceKind::file);
  parsed.file = parse_rule_file(source, parsed.sources, parsed.problems);
  return parsed;
}

std::string canonical(const std::string& expression) {
  SourceMap sources;
  const SourceId source = sources.add("expression", expression, SourceKind::file);
  SyntaxProblem problem;
  const auto expr = parse_rule_expression(source, sources, problem);
  return expr ? print(*expr) : "error: " + describe(problem);
}

/// "line:column message" of the only problem.
std::string only_problem(std::string text) {
  const ParsedRules parsed = parse(std::move(text));
  if (parsed.problems.size() != 1) return std::to_string(parsed.problems.size()) + " problems";
  const RuleProblem& problem = parsed.problems.front();
  const LineColumn place = parsed.sources[problem.where.source].locate(problem.where.begin);
  return std::to_string(place.line) + ":" + std::to_string(place.column) + " " + describe(problem);
}

TEST(RuleParser, ReadsTheDocumentedRule) {
  const ParsedRules parsed = parse(kRule);
  ASSERT_TRUE(parsed.file && parsed.problems.empty()) << only_problem(kRule);
  ASSERT_EQ(parsed.file->rules.size(), 1u);
  const RuleSyntax& rule = parsed.file->rules[0];
  EXPECT_EQ(rule.code.text, "CG004");
  EXPECT_EQ(rule.name.text, "graph-modules-moe-and-router");
  EXPECT_EQ(rule.kind.text, "rejects");
  EXPECT_EQ(rule.frontends.size(), 2u);
  ASSERT_EQ(rule.applies.size(), 2u);
  EXPECT_EQ(rule.applies[0].component, "megatron-core");
  ASSERT_EQ(rule.applies[0].bounds.size(), 2u);
  EXPECT_EQ(rule.applies[0].bounds[1].comparison, Comparison::less);
  EXPECT_EQ(rule.applies[0].bounds[1].version, "0.18");
  EXPECT_TRUE(rule.applies[1].bounds.empty());
  EXPECT_EQ(rule.step, 30);
  EXPECT_EQ(rule.message.text, "CUDA graph modules `moe` and `moe_router` cover the same layer");
  EXPECT_EQ(rule.fixes.size(), 2u);
  EXPECT_EQ(rule.fixes[1].actions.size(), 3u);
  EXPECT_EQ(rule.evidence[1].text.text, "says \"no\" \\ twice\n");
  EXPECT_EQ(parsed.sources.text(rule.require.span),
            "not (\"moe\" in graph.modules and \"moe_router\" in graph.modules)");
  EXPECT_EQ(parsed.sources.text(rule.blame[1].span), "model.cuda_graph_impl");
}

TEST(RuleParser, PrintsWhatParsesToTheSame) {
  const ParsedRules first = parse(kRule);
  const std::string text = print(*first.file);
  const ParsedRules second = parse(text);
  ASSERT_TRUE(second.file) << text;
  EXPECT_EQ(print(*second.file), text);
}

TEST(RuleParser, BinaryFormKeepsEverything) {
  const ParsedRules parsed = parse(kRule);
  const std::string bytes = encode_binary(*parsed.file);
  const auto decoded = decode_binary(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode_binary(*decoded), bytes);
  EXPECT_EQ(print(*decoded), print(*parsed.file));
  EXPECT_EQ(decoded->rules[0].require.span.begin, parsed.file->rules[0].require.span.begin);
}

TEST(RuleParser, BinaryReaderRefusesTruncatedAndForeignBytes) {
  const std::string bytes = encode_binary(*parse(kRule).file);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(decode_binary(bytes.substr(0, size))) << size;
  EXPECT_FALSE(decode_binary(bytes + "x"));
  EXPECT_FALSE(decode_binary(std::string(64, '\xff')));
  // Any single changed byte is refused or read as something; it must not crash (the sanitizer build looks).
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(changed[at] ^ 0x55);
    if (const auto decoded = decode_binary(changed)) print(*decoded);
  }
}

TEST(RuleExpression, BindsAsDocumented) {
  EXPECT_EQ(canonical("a or b and not c = d"), "a or b and not c = d");
  EXPECT_EQ(canonical("(a or b) and c"), "(a or b) and c");
  EXPECT_EQ(canonical("a and (b and c)"), "a and b and c");
  EXPECT_EQ(canonical("((a))"), "a");
  EXPECT_EQ(canonical("not (a = b)"), "not a = b");
  EXPECT_EQ(canonical("a implies b implies c"), "a implies b implies c");
  EXPECT_EQ(canonical("(a implies b) implies c"), "(a implies b) implies c");
  EXPECT_EQ(canonical("a - b - c"), "a - b - c");
  EXPECT_EQ(canonical("a - (b - c)"), "a - (b - c)");
  EXPECT_EQ(canonical("-a * b"), "-a * b");
  EXPECT_EQ(canonical("-(a * b)"), "-(a * b)");
  EXPECT_EQ(canonical("a // b % c ?? d"), "a // b % c ?? d");
  EXPECT_EQ(canonical("a union b minus {1, 2}"), "a union b minus {1, 2}");
  EXPECT_EQ(canonical("a is not none and b is set"), "a is not none and b is set");
  EXPECT_EQ(canonical("a not in {\"x\", \"y\"}"), "a not in {\"x\", \"y\"}");
  EXPECT_EQ(canonical("if a then b else if c then d else e"), "if a then b else if c then d else e");
  EXPECT_EQ(canonical("f(if a then b else c, {})"), "f(if a then b else c, {})");
  EXPECT_EQ(canonical("target.transformer-engine < v2.10"), "target.transformer-engine < v2.10");
  EXPECT_EQ(canonical("1_000 + 1.5e-3"), "1000 + 0.0015");
  EXPECT_EQ(canonical("notes and inner"), "notes and inner");
  EXPECT_EQ(canonical("a + b is none"), "a + b is none");
  EXPECT_EQ(canonical("a = {} and b in f()"), "a = {} and b in f()");
}

TEST(RuleExpression, BindsAroundAnEmptySetAsAroundAnyOther) {
  EXPECT_EQ(canonical("a = {} and b or c"), canonical("((a = {}) and b) or c"));
  EXPECT_EQ(canonical("{} union a minus {} = b and c"), canonical("((({} union a) minus {}) = b) and c"));
}

TEST(RuleExpression, SaysWhatIsWrong) {
  EXPECT_EQ(canonical("a = b = c"), "error: comparisons do not chain; join two with `and`");
  EXPECT_EQ(canonical("a iff b iff c"), "error: `iff` and `implies` in a row need parentheses");
  EXPECT_EQ(canonical("a = not b"), "error: `not` after an operator that binds tighter needs parentheses");
  EXPECT_EQ(canonical("a == b"), "error: equality is written `=`");
  EXPECT_EQ(canonical("a and"), "error: the file ends too early, expected `not` or a value");
  EXPECT_EQ(canonical("(a"), "error: the file ends too early, expected an operator or `)`");
  EXPECT_EQ(canonical("a is big"),
            "error: unexpected `big`, expected `not`, `none`, `set`, `bool`, `int`, `float`, `string`, "
            "`list` or `table`");
  EXPECT_EQ(canonical("99999999999999999999"), "error: the integer does not fit in 64 bits");
  EXPECT_EQ(canonical("1e999"), "error: the number is too large or too small for a float");
  EXPECT_EQ(canonical("3x"), "error: a number and a name need a blank between them");
  EXPECT_EQ(canonical("\"open"), "error: this string does not end on its line");
  EXPECT_EQ(canonical("\"\\q\""), "error: a string may escape only `\\\"`, `\\\\` and `\\n`");
  EXPECT_EQ(canonical("a.b(1)"), "error: a function has no dotted name");
  EXPECT_EQ(canonical("a b"), "error: unexpected `b`, expected an operator or the end of the text");
  EXPECT_EQ(canonical(""), "error: the file ends too early, expected `if`, `not` or a value");
  EXPECT_EQ(canonical("\xc3("), "error: the text is not valid UTF-8");
  EXPECT_EQ(canonical(std::string("a\0b", 3)), "error: the text holds a control character");
}

TEST(RuleExpression, BoundsEveryWayOfNesting) {
  const std::string deep = "error: the expression nests deeper than 100 levels";
  for (const std::size_t count : {std::size_t{2000}, std::size_t{200000}}) {
    const auto repeat = [&](const std::string& part) {
      std::string text;
      for (std::size_t index = 0; index < count; ++index) text += part;
      return text;
    };
    EXPECT_EQ(canonical(repeat("(")), deep);
    EXPECT_EQ(canonical(repeat("{")), deep);
    EXPECT_EQ(canonical(repeat("f(")), deep);
    EXPECT_EQ(canonical(repeat("-") + "a"), deep);
    EXPECT_EQ(canonical(repeat("not ") + "a"), deep);
    EXPECT_EQ(canonical(repeat("if ")), deep);
    EXPECT_EQ(canonical(repeat("a implies ") + "a"), deep);
    EXPECT_EQ(canonical(repeat("a + ") + "a"), deep);
  }
  // Chains of `and` are flat, however long.
  std::string conjunction = "a";
  for (int index = 0; index < 5000; ++index) conjunction += " and a";
  EXPECT_EQ(canonical(conjunction), conjunction);
  EXPECT_EQ(canonical(std::string(90, '(') + "a" + std::string(90, ')')), "a");
}

TEST(RuleParser, NamesAllMissingFields) {
  EXPECT_EQ(only_problem("rule AB001 x { kind rejects enforcer core }"),
            "1:6 `AB001` lacks the fields `applies`, `phase`, `require`, `blame`, `message`, `why`, "
            "`source`, `evidence` and "
            "`raises`");
  EXPECT_EQ(only_problem("\ndefine a.b {\n applies any phase p 1 }"),
            "2:8 define `a.b` lacks the field `value`");
  EXPECT_EQ(only_problem("rewrite AB001 x { silent yes enforcer core applies any phase p 1 set a = 1 "
                         "evidence code 2026-01-01 }"),
            "1:9 `AB001` lacks the field `source`");
}

TEST(RuleParser, KeepsGoodItemsBesideIncompleteOnes) {
  const ParsedRules parsed = parse("define a.b { applies any phase p 1 value 3 }\ndefine c.d { value 3 }");
  ASSERT_TRUE(parsed.file);
  EXPECT_EQ(parsed.file->defines.size(), 1u);
  ASSERT_EQ(parsed.problems.size(), 1u);
  EXPECT_TRUE(parsed.problems[0].missing_field);
}

TEST(RuleParser, ReportsRepeatedFields) {
  EXPECT_EQ(only_problem("define a.b { applies any phase p 1 value 3 value 4 }"),
            "1:44 field `value` of define `a.b` is given twice");
}

TEST(RuleParser, PointsAtSyntaxErrors) {
  EXPECT_EQ(only_problem("rule CG04 x {}"), "1:6 unexpected `CG04`, expected a code such as `CG004`");
  EXPECT_EQ(only_problem("rule CG004 Bad {}"), "1:12 unexpected `Bad`, expected a name in kebab-case");
  EXPECT_EQ(only_problem("rule CG004 x {\n  kind bad\n}"),
            "2:8 unexpected `bad`, expected `rejects`, `breaks` or `advice`");
  EXPECT_EQ(only_problem("define a.b {\n  colour 3\n}"),
            "2:3 unexpected `colour`, expected `frontends`, `applies`, `phase`, `value`, `doc` or `}`");
  EXPECT_EQ(only_problem("define a.b { applies megatron-core >= x }"),
            "1:39 unexpected `x`, expected a version such as `0.16`");
  EXPECT_EQ(only_problem("define ä { }"), "1:8 unexpected `ä`, expected a key or fact");
  EXPECT_EQ(only_problem("}"),
            "1:1 unexpected `}`, expected `rule`, `rewrite`, `define` or the end of the text");
  EXPECT_EQ(only_problem("rule CG004 x { fix safe free \"t\" { move a } }"),
            "1:36 unexpected `move`, expected `set`, `unset`, `add` or `remove`");
  EXPECT_EQ(only_problem("rule CG004 x { evidence code 22-08-2026 }"),
            "1:30 unexpected `22`, expected a date such as `2026-08-22`");
}

TEST(RuleParser, TakesAnEmptyFile) {
  const ParsedRules parsed = parse("# nothing here\n");
  ASSERT_TRUE(parsed.file);
  EXPECT_TRUE(parsed.file->rules.empty() && parsed.problems.empty());
}

}  // namespace
}  // namespace capstan
