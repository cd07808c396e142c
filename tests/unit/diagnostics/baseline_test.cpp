#include "compiler/diagnostics/baseline.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "grammar/source/replace_file.h"

namespace capstan {
namespace {

Diagnostic finding(const char* code, Span span) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.keys = {"model.a"};
  if (span.exists()) diagnostic.labels.push_back({span, "", true});
  return diagnostic;
}

std::optional<Baseline> read(std::string text, Sink& sink) {
  SourceMap sources;
  const SourceId id = sources.add("baseline.json", std::move(text), SourceKind::file);
  return read_baseline(id, sources, sink);
}

TEST(Baseline, SurvivesWritingAndReading) {
  SourceMap sources;
  const SourceId file = sources.add("job.toml", "a = 1\n\nb = 2\n", SourceKind::file);
  const std::vector<Diagnostic> known = {finding("CG001", {file, 0, 1}), finding("CG001", {file, 7, 8}),
                                         finding("PP001", {file, 0, 1}), finding("SY001", {file, 0, 1}),
                                         finding("PP002", Span{})};
  const std::string text = print_baseline(make_baseline(known, sources));
  Sink sink;
  const auto baseline = read(text, sink);
  ASSERT_TRUE(baseline);
  EXPECT_EQ(print_baseline(*baseline), text);
  EXPECT_EQ(text.find("line"), std::string::npos);

  // Two known CG001 findings, three now: one is new. Syntax errors are never known.
  std::vector<Diagnostic> now = {finding("CG001", {file, 0, 1}), finding("CG001", {file, 2, 3}),
                                 finding("CG001", {file, 7, 8}), finding("SY001", {file, 0, 1}),
                                 finding("PP002", Span{})};
  EXPECT_EQ(apply_baseline(now, *baseline, sources), 3u);
  ASSERT_EQ(now.size(), 2u);
  EXPECT_EQ(now[0].code, "CG001");
  EXPECT_EQ(now[0].labels[0].span.begin, 7u);
  EXPECT_EQ(now[1].code, "SY001");
  // Another file is another finding.
  const SourceId other = sources.add("other.toml", "a = 1\n", SourceKind::file);
  std::vector<Diagnostic> elsewhere = {finding("CG001", {other, 0, 1})};
  EXPECT_EQ(apply_baseline(elsewhere, *baseline, sources), 0u);
}

TEST(Baseline, RefusesWhatIsNone) {
  for (const char* text : {"", "{", "[]", "{\"version\": 1}", "{\"version\": 2, \"findings\": []}",
                           "{\"version\": 1, \"findings\": [1]}",
                           "{\"version\": 1, \"findings\": [{\"file\": \"a\", \"code\": \"b\", "
                           "\"fingerprint\": \"c\", \"count\": -1}]}"}) {
    Sink sink;
    EXPECT_FALSE(read(text, sink)) << text;
    ASSERT_EQ(sink.diagnostics().size(), 1u) << text;
    EXPECT_EQ(sink.diagnostics()[0].code, "SU006");
  }
  Sink sink;
  EXPECT_FALSE(read(std::string(1000000, '['), sink));
  Sink place;
  EXPECT_FALSE(read("{\"version\": x}", place));
  EXPECT_EQ(place.diagnostics()[0].labels[0].span, (Span{0, 12, 13}));
}

class ReplaceFile : public testing::Test {
 protected:
  ReplaceFile() {
    std::string name = (std::filesystem::temp_directory_path() / "capstan-XXXXXX").string();
    folder_ = ::mkdtemp(name.data());
  }
  ~ReplaceFile() override { std::filesystem::remove_all(folder_); }
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  std::filesystem::path folder_;
};

TEST_F(ReplaceFile, WritesNewFilesAndKeepsModesAndLinks) {
  EXPECT_EQ(replace_file(folder_ / "new", "one"), std::nullopt);
  EXPECT_EQ(content(folder_ / "new"), "one");
  ::chmod((folder_ / "new").c_str(), 0640);
  std::filesystem::create_symlink("new", folder_ / "link");
  EXPECT_EQ(replace_file(folder_ / "link", "two"), std::nullopt);
  EXPECT_TRUE(std::filesystem::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "new"), "two");
  struct stat status {};
  ASSERT_EQ(::stat((folder_ / "new").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640u);
  EXPECT_EQ(files(), 2u);  // no temporary file is left
}

TEST_F(ReplaceFile, SaysWhyItCannotWrite) {
  EXPECT_EQ(replace_file(folder_, "x"), "is a directory");
  EXPECT_EQ(replace_file(folder_ / "missing" / "file", "x"), "No such file or directory");
  if (std::filesystem::exists("/dev/full")) {
    EXPECT_EQ(replace_file("/dev/full", "x"), "No space left on device");
  }
}

}  // namespace
}  // namespace capstan
