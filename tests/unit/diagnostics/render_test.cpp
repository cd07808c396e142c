#include "compiler/diagnostics/render/render.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "tests/support/json_schema_check.h"

namespace capstan {
namespace {

using Json = nlohmann::json;

class Render : public testing::Test {
 protected:
  SourceId add(std::string name, std::string text, SourceKind kind = SourceKind::file) {
    return sources_.add(std::move(name), std::move(text), kind);
  }
  Span find(SourceId source, std::string_view wanted) const {
    const auto at = sources_[source].bytes().find(wanted);
    EXPECT_NE(at, std::string_view::npos);
    return {source, static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(at + wanted.size())};
  }
  static Diagnostic finding(std::vector<Label> labels) {
    Diagnostic diagnostic;
    diagnostic.code = "CG004";
    diagnostic.name = "graph-moe";
    diagnostic.kind = FindingKind::rejects;
    diagnostic.message = "`a` and `b` conflict";
    diagnostic.labels = std::move(labels);
    return diagnostic;
  }
  std::string text(const Diagnostic& diagnostic, RunSummary summary = {}) const {
    return render_text({diagnostic}, sources_, summary, options_);
  }

  SourceMap sources_;
  RenderOptions options_;
};

TEST_F(Render, TextPutsCaretsUnderTheCode) {
  const SourceId file = add("job.toml", "[model]\ngraph = [\"moe\", \"router\"]\n");
  EXPECT_EQ(text(finding({{find(file, "\"moe\""), "whole layer", true},
                          {find(file, "\"router\""), "its router", false}})),
            "error[CG004] `a` and `b` conflict (graph-moe)\n"
            " --> job.toml:2:10\n"
            "  |\n"
            "2 | graph = [\"moe\", \"router\"]\n"
            "  |          ^^^^^  -------- its router\n"
            "  |          |\n"
            "  |          whole layer\n"
            "\n"
            "found 1 error\n");
}

TEST_F(Render, TextAlignsTabsWideAndCombiningCharacters) {
  // Tab to column 4; each of the two ideographs takes two cells; the combining acute (U+0301) takes none.
  const SourceId file = add("job.toml", "\tk = \"漢字\" # e\xCC\x81 x\n");
  const std::string out = text(finding({{find(file, "\"漢字\""), "", true}, {find(file, "x\n"), "", false}}));
  EXPECT_NE(out.find("1 |     k = \"漢字\" # e\xCC\x81 x\n"
                     "  |         ^^^^^^     -\n"),
            std::string::npos)
      << out;
  EXPECT_NE(out.find("--> job.toml:1:6\n"), std::string::npos)
      << out;  // columns count code points, a tab one
}

TEST_F(Render, TextShowsSeveralFilesAndGaps) {
  const SourceId base = add("base.toml", "a = 1\n");
  const SourceId file = add("job.toml", "x = 1\ny = 2\n\n\nz = 3\n");
  EXPECT_EQ(text(finding({{find(base, "1"), "set here", false},
                          {find(file, "3"), "read here", true},
                          {find(file, "1"), "", false}})),
            "error[CG004] `a` and `b` conflict (graph-moe)\n"
            " --> job.toml:5:5\n"
            "  |\n"
            "1 | x = 1\n"
            "  |     -\n"
            "...\n"
            "5 | z = 3\n"
            "  |     ^ read here\n"
            " ::: base.toml:1:5\n"
            "  |\n"
            "1 | a = 1\n"
            "  |     - set here\n"
            "\n"
            "found 1 error\n");
}

TEST_F(Render, TextCutsLongLinesAroundTheLabel) {
  const SourceId file =
      add("job.toml", "k = [" + std::string(5000, '1') + ", 77, " + std::string(5000, '2') + "]\n");
  const std::string out = text(finding({{find(file, "77"), "this", true}}));
  std::string code, carets;
  std::istringstream lines(out);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LT(line.size(), 160u);
    if (line.starts_with("1 |")) code = line;
    if (line.find('^') != std::string::npos) carets = line;
  }
  // The ellipsis is three bytes and one cell.
  EXPECT_EQ(code.find("77") - 2, carets.find("^^"));
  EXPECT_NE(out.find("--> job.toml:1:5008\n"), std::string::npos);
}

TEST_F(Render, TextNeverEmitsControlCharactersOfTheInput) {
  const SourceId file = add("j\x1b[2Job.toml", "k = \"\x1b[31m\xE2\x80\xAE\xff\"\n");
  Diagnostic diagnostic = finding({{find(file, "k"), "\x07", true}});
  diagnostic.message = "bad \x1b[0m value\nsecond";
  diagnostic.notes = {{Note::Kind::why, "a\x1b\nb", ""}};
  diagnostic.fixes = {{"\x1b", Applicability::safe, CostClass::free, {{find(file, "k"), "\x1bq"}}, true}};
  const std::string out = text(diagnostic);
  EXPECT_EQ(out.find('\x1b'), std::string::npos) << out;
  EXPECT_EQ(out.find('\x07'), std::string::npos);
  EXPECT_EQ(out.find("\xE2\x80\xAE"), std::string::npos);
  EXPECT_EQ(out.find('\xff'), std::string::npos);
  EXPECT_NE(out.find("\\x1b[31m\\u{202e}"), std::string::npos);
}

TEST_F(Render, TextListsNotesAndFixesWithTheirEdit) {
  const SourceId file = add("job.toml", "a = 1\nb = 2\n");
  Diagnostic diagnostic = finding({{find(file, "2"), "", true}});
  diagnostic.notes = {{Note::Kind::why, "first\nsecond", ""}, {Note::Kind::source, "repo path", "https://x"}};
  const Span line{file, 0, 6};
  diagnostic.fixes = {{"drop `a`", Applicability::unsafe, CostClass::speed, {{line, ""}}, true},
                      {"set `b`", Applicability::safe, CostClass::free, {{find(file, "2"), "3"}}, false}};
  options_.documentation_url = "https://docs/";
  EXPECT_EQ(text(diagnostic, {2, 1, 2, 3, "bridge-0.4"}),
            "error[CG004] `a` and `b` conflict (graph-moe)\n"
            " --> job.toml:2:5\n"
            "  |\n"
            "2 | b = 2\n"
            "  |     ^\n"
            "  |\n"
            "  = why: first\n"
            "         second\n"
            "  = source: repo path <https://x>\n"
            "  = fix: drop `a` [unsafe, costs speed, verified]\n"
            "1 - a = 1\n"
            "  = fix: set `b` [safe, free]\n"
            "2 - b = 2\n"
            "2 + b = 3\n"
            "  = more: https://docs/CG004\n"
            "\n"
            "found 1 error in 2 files; 1 with a verified fix; 1 suppressed; 2 in the baseline; 3 undecided; "
            "stack bridge-0.4\n");
}

TEST_F(Render, TextOfMultiLineRangesAndNoPlace) {
  const SourceId file = add("job.toml", "k = [\n  1,\n]\n");
  EXPECT_NE(
      text(finding({{find(file, "[\n  1,\n]"), "list", true}})).find("  |     ^ list (goes on to line 3)\n"),
      std::string::npos);
  EXPECT_EQ(text(finding({})), "error[CG004] `a` and `b` conflict (graph-moe)\n\nfound 1 error\n");
  EXPECT_EQ(render_text({}, sources_, {1, 0, 0, 0, ""}, options_), "no findings in 1 file\n");
  // A label at the very end of a text without a final line feed.
  const SourceId end = add("end.toml", "a");
  EXPECT_NE(text(finding({{Span{end, 1, 1}, "", true}})).find("1 | a\n  |  ^\n"), std::string::npos);
}

TEST_F(Render, TextCountsLabelsThatItDoesNotShow) {
  const SourceId file = add("job.toml", "a = 1\nb = 2\nc = 3\n");
  options_.max_labels = 2;
  const std::string out = text(
      finding({{find(file, "1"), "", false}, {find(file, "2"), "", false}, {find(file, "3"), "", true}}));
  EXPECT_NE(out.find("= places: 1 more not shown"), std::string::npos) << out;
  EXPECT_NE(out.find("3 | c = 3"), std::string::npos);  // the primary one is never the one left out
}

TEST_F(Render, ColorsEndWhereTheyBegan) {
  const SourceId file = add("job.toml", "a = 1\n");
  options_.color = true;
  const std::string out = text(finding({{find(file, "1"), "x", true}}));
  EXPECT_NE(out.find("\x1b[1;31merror[CG004]\x1b[0m"), std::string::npos);
  std::size_t opened = 0, closed = 0;
  for (std::size_t at = out.find("\x1b["); at != std::string::npos; at = out.find("\x1b[", at + 1)) {
    out.compare(at, 4, "\x1b[0m") == 0 ? ++closed : ++opened;
  }
  EXPECT_EQ(opened, closed);
}

TEST_F(Render, ConciseIsOneLineAFinding) {
  const SourceId file = add("job.toml", "\xC3\xBC = 1\nb = 2\n");
  Diagnostic nowhere = finding({});
  nowhere.severity = Severity::hint;
  nowhere.message = "two\nlines";
  EXPECT_EQ(render_concise({finding({{find(file, "1"), "", true}}), nowhere}, sources_, {}, options_),
            "job.toml:1:5: CG004 error `a` and `b` conflict\n"
            "capstan: CG004 hint two lines\n");
}

TEST_F(Render, JsonConformsToItsSchemaAndHasAllPlaces) {
  // U+1F680 is four bytes, one code point, two UTF-16 units.
  const SourceId file = add("job.toml", "k = \"\xF0\x9F\x9A\x80\" # x\nb = 2\n");
  const SourceId argument = add("--set", "a=1", SourceKind::override_argument);
  Diagnostic diagnostic = finding(
      {{find(file, "# x"), "here", true}, {find(argument, "1"), "", false}, {Span{}, "nowhere", false}});
  diagnostic.keys = {"model.k"};
  diagnostic.arguments = {
      {"a", Value(HUGE_VAL)}, {"b", Value(Value::List{Value(1), Value("x")})}, {"c", Value()}};
  diagnostic.notes = {{Note::Kind::why, "because", ""}, {Note::Kind::source, "s", "https://x"}};
  diagnostic.fixes = {
      {"t", Applicability::display_only, CostClass::numerics, {{find(file, "2"), "3"}}, true}};
  Diagnostic broken = finding({});
  broken.message = "bytes \xff here";
  const Json out = Json::parse(render_json({diagnostic, broken}, sources_, {1, 0, 0, 0, ""}, options_));
  std::ifstream schema(CAPSTAN_SOURCE_DIR "/docs/diagnostics.schema.json");
  testing_support::JsonSchemaCheck check(Json::parse(schema));
  EXPECT_EQ(check.check(out), std::vector<std::string>());
  EXPECT_EQ(out["summary"]["errors"], 2);
  const Json& place = out["diagnostics"][0]["place"];
  EXPECT_EQ(place["start"], (Json{{"byte", 11}, {"line", 1}, {"column", 9}, {"utf16_column", 9}}));
  EXPECT_EQ(place["end"], (Json{{"byte", 14}, {"line", 1}, {"column", 12}, {"utf16_column", 12}}));
  EXPECT_EQ(out["diagnostics"][0]["labels"][1]["place"]["source_kind"], "override");
  EXPECT_EQ(out["diagnostics"][0]["arguments"]["a"], "inf");
  // The checker itself must be able to say no.
  Json wrong = out;
  wrong["diagnostics"][0]["severity"] = "fatal";
  wrong["extra"] = 1;
  EXPECT_EQ(check.check(wrong).size(), 2u);
}

TEST_F(Render, SarifHasRegionsRelatedPlacesAndFixes) {
  const SourceId file = add("my job.toml", "a = 1\nb = 2\n");
  const SourceId argument = add("--set", "a=1", SourceKind::override_argument);
  Diagnostic diagnostic = finding({{find(file, "2"), "", true}, {find(file, "1"), "other", false}});
  diagnostic.keys = {"model.b"};
  diagnostic.fixes = {{"t", Applicability::safe, CostClass::free, {{find(file, "2"), "3"}}, true},
                      {"shown", Applicability::display_only, CostClass::free, {}, true}};
  Diagnostic elsewhere = finding({{find(argument, "1"), "", true}});
  elsewhere.severity = Severity::hint;
  elsewhere.keys = {"model.a"};
  const Json out = Json::parse(render_sarif({diagnostic, elsewhere}, sources_, {}, options_));
  EXPECT_EQ(out["version"], "2.1.0");
  const Json& run = out["runs"][0];
  EXPECT_EQ(run["columnKind"], "unicodeCodePoints");
  ASSERT_EQ(run["tool"]["driver"]["rules"].size(), 1u);
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["id"], "CG004");
  EXPECT_EQ(run["tool"]["driver"]["rules"][0]["name"], "GraphMoe");
  const Json& first = run["results"][0];
  EXPECT_EQ(first["level"], "error");
  EXPECT_EQ(first["ruleIndex"], 0);
  const Json& physical = first["locations"][0]["physicalLocation"];
  EXPECT_EQ(physical["artifactLocation"]["uri"], "my%20job.toml");
  EXPECT_EQ(physical["region"], (Json{{"startLine", 2},
                                      {"startColumn", 5},
                                      {"endLine", 2},
                                      {"endColumn", 6},
                                      {"byteOffset", 10},
                                      {"byteLength", 1}}));
  EXPECT_EQ(first["relatedLocations"][0]["message"]["text"], "other");
  ASSERT_EQ(first["fixes"].size(), 1u);
  EXPECT_EQ(first["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"]["text"], "3");
  const Json& second = run["results"][1];
  EXPECT_EQ(second["level"], "note");
  EXPECT_FALSE(second["locations"][0].contains("physicalLocation"));
  EXPECT_EQ(second["locations"][0]["logicalLocations"][0]["fullyQualifiedName"], "model.a");
}

TEST_F(Render, GithubEscapesPropertiesAndText) {
  const SourceId file = add("a,b:c%.toml", "a = 1\n");
  Diagnostic diagnostic = finding({{find(file, "1"), "", true}});
  diagnostic.message = "100% `a`, b\nnext";
  EXPECT_EQ(render_github({diagnostic}, sources_, {}, options_),
            "::error file=a%2Cb%3Ac%25.toml,line=1,endLine=1,col=5,endColumn=6,title=CG004 graph-moe::100%25 "
            "`a`, b%0Anext\n");
}

TEST_F(Render, GitlabFingerprintsAreUniqueAndFreeOfLines) {
  const SourceId file = add("job.toml", "a = 1\nb = 2\n");
  const SourceId moved = add("job.toml", "\n\n\na = 1\nb = 2\n");
  const auto prints = [&](SourceId source) {
    const Json out = Json::parse(render_gitlab(
        {finding({{find(source, "1"), "", true}}), finding({{find(source, "2"), "", true}}), finding({})},
        sources_, {}, options_));
    std::set<std::string> set;
    for (const Json& entry : out) set.insert(entry["fingerprint"].get<std::string>());
    EXPECT_EQ(out[1]["location"]["path"], "job.toml");
    EXPECT_EQ(out[1]["severity"], "major");
    return set;
  };
  EXPECT_EQ(prints(file).size(), 3u);
  EXPECT_EQ(prints(file), prints(moved));
}

TEST_F(Render, JunitCountsFailuresByFailLevel) {
  const SourceId file = add("job.toml", "a = 1\n");
  Diagnostic error = finding({{find(file, "1"), "", true}});
  error.message = "<a> & \"b\"\x01";
  Diagnostic hint = finding({{find(file, "a"), "", true}});
  hint.severity = Severity::hint;
  const std::string out = render_junit({error, hint}, sources_, {}, options_);
  EXPECT_NE(out.find("<testsuites name=\"capstan\" tests=\"2\" failures=\"1\">"), std::string::npos) << out;
  EXPECT_NE(out.find("message=\"&lt;a&gt; &amp; &quot;b&quot;\\x01\""), std::string::npos) << out;
  EXPECT_NE(out.find("<testcase name=\"CG004 graph-moe:1:5\" classname=\"job.toml\">"), std::string::npos);
  options_.fail_level = Severity::hint;
  EXPECT_NE(render_junit({error, hint}, sources_, {}, options_).find("failures=\"2\""), std::string::npos);
  EXPECT_NE(render_junit({}, sources_, {}, options_).find("tests=\"1\" failures=\"0\""), std::string::npos);
}

}  // namespace
}  // namespace capstan
