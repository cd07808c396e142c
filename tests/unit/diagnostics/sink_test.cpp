#include "compiler/diagnostics/sink.h"

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "compiler/diagnostics/render/render.h"

namespace capstan {
namespace {

Diagnostic reported(Diagnostic diagnostic) {
  Sink sink;
  sink.report(std::move(diagnostic));
  return sink.take().at(0);
}

Diagnostic with_message(std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = "TY004";
  diagnostic.message = std::move(message);
  return diagnostic;
}

TEST(Sink, TextsOfUpToTwoThousandBytesStayAsTheyAre) {
  EXPECT_EQ(reported(with_message(std::string(2000, 'a'))).message, std::string(2000, 'a'));
}

TEST(Sink, LongerTextsKeepTheirEndsAndSayWhatIsLeftOut) {
  EXPECT_EQ(reported(with_message(std::string(2001, 'a'))).message,
            std::string(1200, 'a') + "… (601 bytes left out) …" + std::string(200, 'a'));
  Diagnostic diagnostic = with_message("short");
  diagnostic.notes.push_back({Note::Kind::help, std::string(5000, 'n'), {}});
  diagnostic.labels.push_back({Span{0, 0, 1}, std::string(5000, 'l'), true});
  diagnostic.keys = {std::string(5000, 'k')};
  const Diagnostic kept = reported(diagnostic);
  EXPECT_EQ(kept.message, "short");
  for (const std::string& text : {kept.notes[0].text, kept.labels[0].text, kept.keys[0]})
    EXPECT_NE(text.find("… (3600 bytes left out) …"), std::string::npos) << text.substr(0, 40);
}

TEST(Sink, ACharacterIsNotCutInTwo) {
  std::string message(1199, 'a');  // the first byte of `é` is the last that fits, its second is not
  for (int i = 0; i < 1000; ++i) message += "\u00e9";
  const std::string kept = reported(with_message(message)).message;
  EXPECT_EQ(kept.substr(0, 1199), std::string(1199, 'a'));
  EXPECT_EQ(kept.substr(1199, 3), "…");
  EXPECT_NE(kept.find("(1800 bytes left out)"), std::string::npos) << kept.substr(1190, 60);
}

TEST(Sink, ListsAmongTheArgumentsKeepAThousandElements) {
  const auto list_of = [](std::size_t count) {
    std::vector<Value> elements;
    for (std::size_t i = 0; i < count; ++i) elements.push_back(Value(static_cast<std::int64_t>(i)));
    return Value(std::move(elements));
  };
  Diagnostic diagnostic = with_message("short");
  diagnostic.arguments.emplace_back("short", list_of(1000));
  diagnostic.arguments.emplace_back("long", list_of(1001));
  diagnostic.arguments.emplace_back("nested", Value(std::vector<Value>{Value(std::string(3000, 'x'))}));
  const Diagnostic kept = reported(diagnostic);
  EXPECT_EQ(kept.arguments[0].second, list_of(1000));
  ASSERT_EQ(kept.arguments[1].second.list().size(), 1001u);
  EXPECT_EQ(kept.arguments[1].second.list()[999], Value(999));
  EXPECT_EQ(kept.arguments[1].second.list()[1000], Value("… (1 elements left out)"));
  EXPECT_EQ(kept.arguments[2].second.list()[0].string().find("… (1600 bytes left out) …"), 1200u);
}

TEST(Sink, TheFingerprintIsThatOfTheWholeValues) {
  Diagnostic one = with_message("m"), other = with_message("m");
  one.keys = {std::string(3000, 'a') + "x" + std::string(1000, 'a')};  // they differ in what is left out
  other.keys = {std::string(3000, 'a') + "y" + std::string(1000, 'a')};
  EXPECT_EQ(reported(one).keys, reported(other).keys);
  EXPECT_NE(reported(one).fingerprint, reported(other).fingerprint);
}

/// Seconds to render `count` findings spread over one line of `bytes` bytes.
double seconds_to_render(std::size_t bytes, std::size_t count, std::string& out) {
  SourceMap sources;
  std::string line = "x = \"";
  while (line.size() < bytes) line += "abcdefgh\t";
  const SourceId file = sources.add("a.toml", line + "\"\n", SourceKind::file);
  Sink sink;
  for (std::size_t i = 0; i < count; ++i) {
    const auto place = static_cast<std::uint32_t>(5 + i * (bytes - 10) / count);
    sink.problem("TY004", "a problem", Span{file, place, place + 2});
  }
  RunSummary summary;
  summary.files = 1;
  const auto start = std::chrono::steady_clock::now();
  out = render_text(sink.diagnostics(), sources, summary, {});
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

TEST(RenderText, ALineOfMegabytesIsShownInPartAndAtOnce) {
  std::string out;
  const double seconds = seconds_to_render(10'000'000, 1000, out);
  // A thousand findings of a screen's width each; walking the whole line for each takes a minute.
  EXPECT_LT(out.size(), 1'000'000u);
  EXPECT_LT(seconds, 20.0);
}

}  // namespace
}  // namespace capstan
