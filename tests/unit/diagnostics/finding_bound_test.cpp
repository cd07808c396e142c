#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/diagnostics/finding_bound.h"
#include "compiler/diagnostics/sink.h"

namespace capstan {
namespace {

std::string shown(const std::vector<Diagnostic>& diagnostics) {
  std::string out;
  for (const Diagnostic& diagnostic : diagnostics) {
    const Span place = diagnostic.labels.at(0).span;
    out += std::to_string(place.source) + ":" + std::to_string(place.begin) + " " + diagnostic.code +
           (diagnostic.severity == Severity::error ? "!" : "") +
           (diagnostic.code == "TL003" ? " " + diagnostic.message : "") + "; ";
  }
  return out;
}

TEST(FindingBound, KeepsTheFirstOfEachCodeAndFileAndCountsTheOthers) {
  Sink sink;
  const auto at = [](SourceId source, std::uint32_t place) { return Span{source, place, place + 1}; };
  for (const std::uint32_t place : {9u, 1u, 5u, 7u}) sink.problem("TY002", "x", at(0, place));
  sink.problem("TY004", "x", at(0, 3));
  sink.problem("TY002", "x", at(1, 2));
  for (const std::uint32_t place : {4u, 6u, 8u}) sink.problem("EX004", "x", at(1, place));
  std::vector<Diagnostic> bounded = sink.diagnostics();
  bound_findings(bounded, 2);
  EXPECT_EQ(shown(bounded),
            "0:1 TY002!; 0:3 TY004!; 0:5 TY002!; "
            "0:7 TL003! 2 more findings of TY002 (unknown-key) from here on are not shown; "
            "1:2 TY002!; 1:4 EX004; 1:6 EX004; "
            "1:8 TL003 1 more finding of EX004 (value-not-literal) from here on is not shown; ");
}

TEST(FindingBound, LeavesFewFindingsAsTheyAre) {
  Sink sink;
  sink.problem("TY002", "x", Span{0, 9, 10});
  sink.problem("TY002", "x", Span{0, 1, 2});
  std::vector<Diagnostic> same = sink.diagnostics();
  bound_findings(same, 2);
  EXPECT_EQ(shown(same), "0:9 TY002!; 0:1 TY002!; ");
}

}  // namespace
}  // namespace capstan
