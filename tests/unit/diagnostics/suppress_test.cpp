#include "compiler/diagnostics/suppress.h"

#include <gtest/gtest.h>

#include <string>

#include "grammar/toml/toml_comments.h"

namespace capstan {
namespace {

const std::vector<KnownCode> kSuppressible = {{"CG001", "graph-nan", "", FindingKind::rejects},
                                              {"CG002", "graph-slow", "", FindingKind::advice}};

struct Checked {
  SourceMap sources;
  Sink sink;
  std::vector<Suppression> suppressions;
  std::vector<Diagnostic> left;
  std::size_t suppressed = 0;

  /// One CG001 finding at each `X` of the text and one CG002 finding at each `Y`.
  explicit Checked(std::string text, const std::string& today = "2026-11-29") {
    const SourceId id = sources.add("job.toml", std::move(text), SourceKind::file);
    const std::string_view bytes = sources[id].bytes();
    for (std::uint32_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != 'X' && bytes[i] != 'Y') continue;
      Diagnostic diagnostic;
      diagnostic.code = bytes[i] == 'X' ? "CG001" : "CG002";
      diagnostic.name = bytes[i] == 'X' ? "graph-nan" : "graph-slow";
      diagnostic.labels.push_back({Span{id, i, i + 1}, "", true});
      left.push_back(diagnostic);
    }
    suppressions = read_suppressions(find_toml_comments(id, sources), sources, kSuppressible, today, sink);
    suppressed = apply_suppressions(left, suppressions, sources);
    report_unused(suppressions, sources, sink);
  }
  /// "line of each finding left|code@begin-end message|..."
  std::string shown() const {
    std::string out;
    for (const Diagnostic& diagnostic : left) {
      out += diagnostic.code + ":" + std::to_string(sources[0].locate(diagnostic.labels[0].span.begin).line) +
             " ";
    }
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      const Span span = diagnostic.labels[0].span;
      out += "|" + diagnostic.code + " `" + std::string(sources.text(span)) + "` " + diagnostic.message;
    }
    return out;
  }
};

TEST(Suppress, CoversItsLineOrTheNext) {
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- known\nb = X\n").shown(), "CG001:2 ");
  EXPECT_EQ(Checked("# capstan: allow CG001 -- known\na = X\nb = X\n").shown(), "CG001:3 ");
  EXPECT_EQ(
      Checked(
          "# capstan: allow CG001 -- known\n# more words\n# capstan: allow graph-slow -- too\na = X + Y\n")
          .shown(),
      "");
  EXPECT_EQ(Checked("# capstan: allow CG001,CG002 -- known\na = X + Y\n").suppressed, 2u);
  EXPECT_EQ(Checked("a = X # capstan:allow CG001--known").shown(), "");
}

TEST(Suppress, CoversAFile) {
  EXPECT_EQ(Checked("a = X\nb = Y\nc = X\n# capstan: allow-file CG001 -- test config\n").shown(), "CG002:2 ");
}

TEST(Suppress, OtherCommentsAreNoSuppressions) {
  EXPECT_EQ(Checked("# capstan is a tool\n# allow CG001\na = 1").shown(), "");
}

TEST(Suppress, ReportsMissingReasonsAndMalformedOnes) {
  EXPECT_EQ(Checked("a = X # capstan: allow CG001\n").shown(),
            "CG001:1 |SU002 `# capstan: allow CG001` this suppression gives no reason; write `-- ` and why "
            "behind the codes");
  EXPECT_EQ(Checked("# capstan: allow CG001 -- \n").sink.diagnostics()[0].code, "SU002");
  EXPECT_EQ(Checked("# capstan: allow CG001 because\n").shown(),
            "|SU001 `because` `--` and a reason must follow the codes of a suppression");
  EXPECT_EQ(Checked("# capstan: ignore CG001 -- x\n").shown(),
            "|SU001 `ignore` `ignore` is no word after `capstan:`; `allow` or `allow-file` is needed");
  EXPECT_EQ(Checked("# capstan: allow -- x\n").shown(), "|SU001 `-` a code is missing in this suppression");
  EXPECT_EQ(Checked("# capstan: allow CG001, -- x\n").sink.diagnostics()[0].code, "SU001");
}

TEST(Suppress, ReportsUnknownAndUnusedCodes) {
  EXPECT_EQ(Checked("# capstan: allow CG999 -- x\na = X\n").shown(),
            "CG001:2 |SU003 `CG999` no rule has the code or name `CG999`");
  const Checked unused("a = 1 # capstan: allow CG001 -- x\nb = 2\n");
  EXPECT_EQ(unused.shown(), "|SU004 `CG001` this suppression of `CG001` suppresses nothing");
  ASSERT_EQ(unused.sink.diagnostics()[0].fixes.size(), 1u);
  EXPECT_EQ(unused.sources.text(unused.sink.diagnostics()[0].fixes[0].edits[0].span),
            " # capstan: allow CG001 -- x");
  const Checked alone("b = 2\n  # capstan: allow CG001 -- x\na = 1\n");
  EXPECT_EQ(alone.sources.text(alone.sink.diagnostics()[0].fixes[0].edits[0].span),
            "  # capstan: allow CG001 -- x\n");
  // One of two codes is used: the comment must stay.
  const Checked half("a = X # capstan: allow CG001, CG002 -- x\n");
  EXPECT_EQ(half.shown(), "|SU004 `CG002` this suppression of `CG002` suppresses nothing");
  EXPECT_TRUE(half.sink.diagnostics()[0].fixes.empty());
}

TEST(Suppress, ExpiresOnItsDate) {
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- wait until 2026-11-29\n").shown(), "");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- wait until 2026-11-28\n").shown(),
            "CG001:1 |SU005 `2026-11-28` this suppression ended on 2026-11-28");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- wait until 2026-02-30\n").sink.diagnostics()[0].code,
            "SU001");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- until the fix lands\n").shown(), "");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- until 2027-01-01\n").sink.diagnostics()[0].code,
            "SU002");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- x until 2020-01-01\n", "").shown(), "");
  // In brackets, as documents write what may be left out.
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- wait [until 2026-11-29]\n").shown(), "");
  EXPECT_EQ(Checked("a = X # capstan: allow CG001 -- wait [until 2026-11-28]\n").shown(),
            Checked("a = X # capstan: allow CG001 -- wait until 2026-11-28\n").shown());
  for (const char* wrong :
       {"wait [until 2026-02-30]", "wait [until soon]", "[until 2027-01-01] wait until it"})
    EXPECT_EQ(
        Checked(std::string("a = X # capstan: allow CG001 -- ") + wrong + "\n").sink.diagnostics()[0].code,
        "SU001")
        << wrong;
}

TEST(Suppress, SyntaxErrorsCannotBeSuppressed) {
  Checked checked("a = 1 # capstan: allow-file CG001 -- x\n");
  Diagnostic diagnostic;
  diagnostic.code = "SY001";
  diagnostic.labels.push_back({Span{0, 0, 1}, "", true});
  std::vector<Diagnostic> diagnostics{diagnostic};
  checked.suppressions[0].targets[0].code = "SY001";
  EXPECT_EQ(apply_suppressions(diagnostics, checked.suppressions, checked.sources), 0u);
}

}  // namespace
}  // namespace capstan
