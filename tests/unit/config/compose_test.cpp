#include "compiler/config/compose.h"

#include <gtest/gtest.h>

#include "tests/unit/config/config_from_text.h"

namespace capstan {
namespace {

using test::compose_text;
using test::Composed;
using test::MemoryReader;

TEST(Compose, KeepsWhereEachValueCameFrom) {
  MemoryReader reader;
  reader.files["a.toml"] = "extends = [\"base.toml\"]\n[model]\nx = 2\n";
  reader.files["base.toml"] = "[model]\nx = 1\ny = [1, 2]\n";
  Composed result;
  compose_text(result, reader, {"model.x=3"});
  ASSERT_TRUE(result.config) << result.messages();
  const Setting& x = *result.config->find("model.x");
  EXPECT_EQ(x.value, Value(3));
  EXPECT_EQ(x.origin.kind, OriginKind::override_argument);
  ASSERT_EQ(x.history.size(), 2u);
  EXPECT_EQ(x.history[0].kind, OriginKind::extended_file);
  EXPECT_EQ(x.history[1].kind, OriginKind::file);
  EXPECT_EQ(result.sources.text(x.history[1].value), "2");
  const Setting& y = *result.config->find("model.y");
  ASSERT_EQ(y.items.size(), 2u);
  EXPECT_EQ(result.sources.text(y.items[1]), "2");
  // The base comes before the file that names it.
  ASSERT_EQ(result.config->files.size(), 2u);  // the override is no file
  EXPECT_EQ(result.sources[result.config->files[0]].name(), "base.toml");
  EXPECT_EQ(result.sources[result.config->files[1]].name(), "a.toml");
}

TEST(Compose, ReplacesListsAndMergesTables) {
  MemoryReader reader;
  reader.files["a.toml"] = "extends = \"base.toml\"\n[s]\nlist = [3]\ntable = { b = { d = 4 }, e = 5 }\n";
  reader.files["base.toml"] = "[s]\nlist = [1, 2]\ntable = { a = 1, b = { c = 2, d = 3 } }\n";
  Composed result;
  compose_text(result, reader);
  ASSERT_TRUE(result.config);
  EXPECT_EQ(to_text(result.config->find("s.list")->value), "[3]");
  EXPECT_EQ(to_text(result.config->find("s.table")->value), "{ a = 1, b = { c = 2, d = 4 }, e = 5 }");
}

TEST(Compose, RemovesByOverride) {
  Composed result;
  compose_text(result, "[model]\nx = 1\n[dataset]\na = 1\nb = { c = 1, d = 2 }\n",
               {"~model.x", "~dataset.b.c"});
  ASSERT_TRUE(result.config);
  EXPECT_EQ(result.config->find("model.x"), nullptr);
  EXPECT_EQ(to_text(result.config->find("dataset.b")->value), "{ d = 2 }");
  EXPECT_TRUE(result.sink.diagnostics().empty()) << result.messages();

  Composed whole;
  compose_text(whole, "[model]\nx = 1\n[dataset]\na = 1\n[datasets]\na = 1\n", {"~dataset"});
  EXPECT_EQ(whole.config->find("dataset.a"), nullptr);
  EXPECT_NE(whole.config->find("datasets.a"), nullptr);

  Composed missing;
  compose_text(missing, "[model]\nx = 1\n", {"~model.y"});
  EXPECT_EQ(missing.messages(), "SY005 `~model.y` removes a key that is not set\n");
}

TEST(Compose, AddsOnlyWhatIsNew) {
  Composed result;
  compose_text(result, "[model]\nx = 1\n", {"+model.y=2", "+model.x=2", "++model.x=3"});
  EXPECT_EQ(result.messages(),
            "SY005 `+model.x` adds a key that is already set; write `model.x=...` to change it\n");
  EXPECT_EQ(result.config->find("model.y")->value, Value(2));
  EXPECT_EQ(result.config->find("model.x")->value, Value(3));
}

TEST(Compose, AnOverrideReachesIntoATable) {
  Composed result;
  compose_text(result, "[dataset]\nblend = { a = 1, b = 2 }\n", {"dataset.blend.a=7"});
  EXPECT_EQ(to_text(result.config->find("dataset.blend")->value), "{ a = 7, b = 2 }");
}

TEST(Extends, FindsACircleWithDifferentSpellings) {
  MemoryReader reader;
  reader.files["a.toml"] = "extends = [\"x/../b.toml\"]\n";
  reader.files["b.toml"] = "extends = [\"./a.toml\"]\n";
  Composed result;
  compose_text(result, reader);
  EXPECT_FALSE(result.config);
  EXPECT_EQ(result.messages(),
            "SY003 files extend each other in a circle: `a.toml` extends `b.toml` extends `a.toml`\n");
}

TEST(Extends, NamesWhatIsNoFile) {
  const auto messages = [](const char* name) {
    MemoryReader reader;
    reader.files["sub/a.toml"] = std::string("extends = [\"") + name + "\"]\n";
    SourceMap sources;
    Sink sink;
    const SourceId file = sources.add("sub/a.toml", reader.files["sub/a.toml"], SourceKind::file);
    EXPECT_FALSE(load_layers(file, sources, disk_reader(), sink));
    return sink.diagnostics().at(0).message;
  };
  EXPECT_EQ(messages(".."), "cannot read `.`: is a directory");
  EXPECT_EQ(messages("../."), "cannot read `.`: is a directory");
  EXPECT_EQ(messages("/"), "cannot read `/`: is a directory");
  EXPECT_EQ(messages(""), "a name in `extends` is empty; needs the name of a file");
}

TEST(Extends, ADiamondIsNoCircle) {
  MemoryReader reader;
  reader.files["a.toml"] = "extends = [\"l.toml\", \"r.toml\"]\n";
  reader.files["l.toml"] = "extends = [\"base.toml\"]\n[m]\nx = 1\n";
  reader.files["r.toml"] = "extends = [\"base.toml\"]\n";
  reader.files["base.toml"] = "[m]\nx = 0\n";
  Composed result;
  compose_text(result, reader);
  ASSERT_TRUE(result.config) << result.messages();
  // r's base comes after l, so it wins.
  EXPECT_EQ(result.config->find("m.x")->value, Value(0));
}

TEST(Compose, RefusesAListOfFilesThatIsTooLongBeforeItReadsOne) {
  const auto messages = [](int files) {
    MemoryReader reader;
    reader.files["a.toml"] = "extends = [";
    for (int i = 0; i < files; ++i) {
      const std::string name = "f" + std::to_string(i) + ".toml";
      reader.files["a.toml"] += '"' + name + "\", ";
      reader.files[name] = "[m]\nx = 1\n";
    }
    reader.files["a.toml"] += "]\n[m]\ny = 2\n";
    Composed result;
    compose_text(result, reader);
    return result.messages() +
           (result.config ? "composed of " + std::to_string(result.config->files.size()) : "");
  };
  // The file itself is the last layer of at most 256.
  EXPECT_EQ(messages(255), "composed of 256");
  EXPECT_EQ(messages(257), "SY004 `extends` names 257 files; at most 256 can take part\n");
  EXPECT_EQ(messages(5000), "SY004 `extends` names 5000 files; at most 256 can take part\n");
}

TEST(Extends, TheNumberOfLayersIsBounded) {
  // Each of 16 levels extends the next one twice: 2^16 layers without a bound.
  MemoryReader reader;
  reader.files["a.toml"] = "extends = [\"f1.toml\", \"f1.toml\"]\n";
  for (int level = 1; level < 15; ++level) {
    const std::string next = "\"f" + std::to_string(level + 1) + ".toml\"";
    reader.files["f" + std::to_string(level) + ".toml"] = "extends = [" + next + ", " + next + "]\n";
  }
  reader.files["f15.toml"] = "";
  Composed result;
  compose_text(result, reader);
  EXPECT_FALSE(result.config);
  EXPECT_NE(result.messages().find("SY004 more than 256 files take part"), std::string::npos);
  EXPECT_LT(result.sink.diagnostics().size(), 1000u);
}

TEST(EnvironmentLayer, TheLastOfTwoHolds) {
  Composed result;
  SourceMap& sources = result.sources;
  const auto layer = process_environment_layer({"A=1", "B=x=y", "A=2"}, sources, result.sink);
  ASSERT_TRUE(layer);
  const Config config = compose({*layer}, result.sink);
  EXPECT_EQ(config.find("env.A")->value, Value("2"));
  EXPECT_EQ(config.find("env.B")->value, Value("x=y"));
  EXPECT_EQ(sources.text(config.find("env.B")->origin.value), "x=y");
}

TEST(EnvironmentLayer, LineBreaksBelongToTheValue) {
  Composed result;
  SourceMap& sources = result.sources;
  const auto layer = process_environment_layer({"A=1\n2\n", "B=3"}, sources, result.sink);
  ASSERT_TRUE(layer);
  const Config config = compose({*layer}, result.sink);
  EXPECT_EQ(config.find("env.A")->value, Value("1\n2\n"));
  EXPECT_EQ(sources.text(config.find("env.A")->origin.value), "1\n2\n");
  EXPECT_EQ(sources.text(config.find("env.B")->origin.key), "B");
}

TEST(EnvironmentLayer, BytesThatAreNoTextAreReported) {
  Composed result;
  EXPECT_FALSE(process_environment_layer({"NCCL_A=x\xFF"}, result.sources, result.sink));
  EXPECT_EQ(result.sink.count(Severity::error), 1u);
}

}  // namespace
}  // namespace capstan
