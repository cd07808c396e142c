#include "compiler/diagnostics/selection.h"

#include <gtest/gtest.h>

#include "compiler/diagnostics/codes.h"

namespace capstan {
namespace {

const std::vector<KnownCode> kSelectable = {{"CG001", "graph-nan", "cuda-graph", FindingKind::rejects},
                                            {"CG002", "graph-slow", "cuda-graph", FindingKind::advice},
                                            {"PP001", "pipeline-odd", "parallel", FindingKind::breaks},
                                            {"SY001", "syntax-error", "", FindingKind::problem}};

/// Codes that stay, with `!` for errors, `~` for warnings, `?` for hints.
std::string kept(const Selection& selection) {
  std::vector<Diagnostic> diagnostics;
  for (const KnownCode& code : kSelectable) {
    Diagnostic diagnostic;
    diagnostic.code = code.code;
    diagnostic.name = code.name;
    diagnostic.kind = code.kind;
    diagnostic.severity = code.kind == FindingKind::advice ? Severity::warning : Severity::error;
    diagnostics.push_back(diagnostic);
  }
  const std::size_t dropped = apply_selection(diagnostics, selection, kSelectable);
  EXPECT_EQ(dropped + diagnostics.size(), kSelectable.size());
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    out += diagnostic.code + (diagnostic.severity == Severity::error     ? "!"
                              : diagnostic.severity == Severity::warning ? "~"
                                                                         : "?");
  }
  return out;
}

TEST(Selection, SelectsByCodePrefixNameFamilyAndKind) {
  EXPECT_EQ(kept({}), "CG001!CG002~PP001!SY001!");
  EXPECT_EQ(kept({.select = {"CG"}}), "CG001!CG002~SY001!");
  EXPECT_EQ(kept({.select = {"CG001"}}), "CG001!SY001!");
  EXPECT_EQ(kept({.select = {"pipeline-odd"}}), "PP001!SY001!");
  EXPECT_EQ(kept({.select = {"cuda-graph"}}), "CG001!CG002~SY001!");
  EXPECT_EQ(kept({.select = {"advice"}}), "CG002~SY001!");
}

TEST(Selection, TheMostSpecificSelectorDecidesAndIgnoringWinsTies) {
  EXPECT_EQ(kept({.ignore = {"CG"}}), "PP001!SY001!");
  EXPECT_EQ(kept({.select = {"CG002"}, .ignore = {"CG"}}), "CG002~SY001!");
  EXPECT_EQ(kept({.select = {"CG"}, .ignore = {"CG"}}), "SY001!");
  EXPECT_EQ(kept({.select = {"all"}, .ignore = {"advice"}}), "CG001!PP001!SY001!");
  EXPECT_EQ(kept({.select = {"advice"}, .ignore = {"cuda-graph"}}), "SY001!");
}

TEST(Selection, UnreadableTextsAreAlwaysReported) {
  EXPECT_EQ(kept({.ignore = {"all"}}), "SY001!");
  EXPECT_EQ(kept({.ignore = {"SY001"}, .severities = {{"SY", Severity::hint}}}), "CG001!CG002~PP001!SY001!");
}

TEST(Selection, KeysAndValuesThatWereNotReadAreAlwaysReported) {
  const std::vector<KnownCode> known = builtin_known_codes();
  for (const char* code : {"TY001", "TY002", "TY003", "TY004", "TG001", "EX002"}) {
    std::vector<Diagnostic> found = {start_problem(code, "a problem")};
    EXPECT_EQ(apply_selection(
                  found, {.select = {"CG"}, .ignore = {code}, .severities = {{code, Severity::hint}}}, known),
              0u)
        << code;
    ASSERT_EQ(found.size(), 1u) << code;
    EXPECT_EQ(found[0].severity, Severity::error) << code;
  }
  // Warnings of the same families may be left out.
  std::vector<Diagnostic> warning = {start_problem("EX001", "an argument")};
  EXPECT_EQ(apply_selection(warning, {.ignore = {"EX001"}}, known), 1u);
}

TEST(Selection, OverridesSeverities) {
  EXPECT_EQ(kept({.severities = {{"CG", Severity::hint}, {"graph-nan", Severity::warning}}}),
            "CG001~CG002?PP001!SY001!");
  EXPECT_EQ(kept({.severities = {{"CG", Severity::hint}, {"CG", Severity::warning}}}),
            "CG001~CG002~PP001!SY001!");
  std::pair<std::string, Severity> override;
  EXPECT_TRUE(parse_severity_override("CG=hint", override));
  EXPECT_EQ(override.first, "CG");
  EXPECT_EQ(override.second, Severity::hint);
  EXPECT_FALSE(parse_severity_override("CG=fatal", override));
  EXPECT_FALSE(parse_severity_override("=hint", override));
  EXPECT_FALSE(parse_severity_override("CG", override));
}

TEST(Selection, NamesSelectorsThatMatchNothing) {
  const Selection selection{
      .select = {"CG", "XX"}, .ignore = {"graph-nan", "nothing"}, .severities = {{"ZZ9", Severity::hint}}};
  EXPECT_EQ(unknown_selectors(selection, kSelectable), (std::vector<std::string>{"XX", "nothing", "ZZ9"}));
}

TEST(Selection, FailLevel) {
  std::vector<Diagnostic> diagnostics(1);
  diagnostics[0].severity = Severity::warning;
  EXPECT_FALSE(fails(diagnostics, Severity::error));
  EXPECT_TRUE(fails(diagnostics, Severity::warning));
  EXPECT_TRUE(fails(diagnostics, Severity::hint));
  EXPECT_FALSE(fails({}, Severity::hint));
}

}  // namespace
}  // namespace capstan
