#include "compiler/fixes/edit.h"

#include <gtest/gtest.h>

#include "compiler/fixes/apply.h"
#include "grammar/toml/toml_document.h"

namespace capstan {
namespace {

struct Fixture {
  SourceMap sources;
  Config config;

  explicit Fixture(const std::string& text) { layer(text, OriginKind::file); }

  void layer(const std::string& text, OriginKind kind) {
    const SourceId source =
        sources.add("config" + std::to_string(sources.size()) + ".toml", text, SourceKind::file);
    SyntaxProblem problem;
    const auto tree = parse_toml(source, sources, problem);
    ASSERT_TRUE(tree) << problem.message;
    config.files.push_back(source);
    flatten(*tree, "", kind);
  }

  void flatten(const SyntaxNode& table, const std::string& prefix, OriginKind kind) {
    for (const SyntaxEntry& entry : table.entries) {
      const std::string path = prefix + entry.key;
      if (entry.value.kind == SyntaxNode::Kind::table) {
        flatten(entry.value, path + ".", kind);
        continue;
      }
      Setting setting;
      setting.path = path;
      setting.value = to_value(entry.value);
      setting.origin = {kind, entry.key_span, entry.value.span};
      for (const SyntaxNode& item : entry.value.items) setting.items.push_back(item.span);
      if (const Setting* old = config.find(path)) setting.history.push_back(old->origin);
      config.settings[path] = setting;
    }
  }

  std::string after(const std::vector<KeyChange>& changes, std::size_t source = 0) {
    const EditPlan plan = plan_edits(changes, config, sources);
    std::vector<Edit> edits;
    for (const Edit& edit : plan.edits) {
      if (edit.span.source == source) edits.push_back(edit);
    }
    const auto text = apply_edits(sources[static_cast<SourceId>(source)].bytes(), edits);
    return text.value_or("OVERLAP");
  }
};

KeyChange set(std::string path, Value value) {
  return {KeyChange::Kind::set, std::move(path), std::move(value), {}};
}
KeyChange unset(std::string path) {
  return {KeyChange::Kind::unset, std::move(path), {}, {}};
}
KeyChange add(std::string path, Value value) {
  return {KeyChange::Kind::add, std::move(path), std::move(value), {}};
}
KeyChange take(std::string path, Value value) {
  return {KeyChange::Kind::remove, std::move(path), std::move(value), {}};
}

const char* const kText =
    "# top\n"
    "[model]  # the model\n"
    "impl = 'local'   # keep me\n"
    "scope = [\"attn\", \"moe\", \"moe_router\"]\n"
    "layers = 12\n"
    "\n"
    "[rng]\n"
    "  tracker = true\n";

TEST(Edit, ReplacesAValueAndKeepsQuotesAndComments) {
  EXPECT_EQ(Fixture(kText).after({set("model.impl", "none")}),
            "# top\n[model]  # the model\nimpl = 'none'   # keep me\nscope = [\"attn\", \"moe\", "
            "\"moe_router\"]\nlayers = 12\n\n[rng]\n  "
            "tracker = true\n");
}

TEST(Edit, SettingTheSameValueDoesNothing) {
  EXPECT_TRUE(
      plan_edits({set("model.layers", 12)}, Fixture(kText).config, Fixture(kText).sources).edits.empty());
}

TEST(Edit, RemovesListElementsAtEachPlace) {
  EXPECT_NE(Fixture(kText).after({take("model.scope", "attn")}).find("scope = [\"moe\", \"moe_router\"]\n"),
            std::string::npos);
  EXPECT_NE(Fixture(kText).after({take("model.scope", "moe")}).find("scope = [\"attn\", \"moe_router\"]\n"),
            std::string::npos);
  EXPECT_NE(Fixture(kText).after({take("model.scope", "moe_router")}).find("scope = [\"attn\", \"moe\"]\n"),
            std::string::npos);
  EXPECT_NE(Fixture(kText)
                .after({take("model.scope", "moe"), take("model.scope", "moe_router")})
                .find("scope = [\"attn\"]\n"),
            std::string::npos);
  EXPECT_NE(Fixture(kText)
                .after({take("model.scope", "attn"), take("model.scope", "moe_router")})
                .find("scope = [\"moe\"]\n"),
            std::string::npos);
  EXPECT_NE(
      Fixture(kText)
          .after({take("model.scope", "attn"), take("model.scope", "moe"), take("model.scope", "moe_router")})
          .find("scope = []\n"),
      std::string::npos);
}

TEST(Edit, AddsListElementsOnceAndInTheListsQuotes) {
  EXPECT_NE(Fixture("[m]\ns = ['a']\n").after({add("m.s", "b"), add("m.s", "b")}).find("s = ['a', 'b']\n"),
            std::string::npos);
  EXPECT_NE(Fixture("[m]\ns = []\n").after({add("m.s", "b")}).find("s = [\"b\"]\n"), std::string::npos);
  EXPECT_NE(Fixture("[m]\ns = [\"a\",]\n").after({add("m.s", "b")}).find("s = [\"a\", \"b\",]\n"),
            std::string::npos);
  EXPECT_EQ(Fixture("[m]\ns = 'a'\n").after({add("m.s", "b")}), "[m]\ns = 'a,b'\n");
  EXPECT_EQ(Fixture("[m]\nt = 1\n").after({add("m.s", "b")}), "[m]\nt = 1\ns = [\"b\"]\n");
}

TEST(Edit, SwapsAnElement) {
  EXPECT_EQ(Fixture("[m]\ns = [\"a\", \"b\"]\n").after({take("m.s", "b"), add("m.s", "c")}),
            "[m]\ns = [\"a\", \"c\"]\n");
}

TEST(Edit, MultiLineListsKeepTheirLayout) {
  const std::string text = "[m]\ns = [\n  \"a\",  # one\n  \"b\",  # two\n  \"c\"   # three\n]\nx = 1\n";
  EXPECT_EQ(Fixture(text).after({take("m.s", "b")}),
            "[m]\ns = [\n  \"a\",  # one\n  \"c\"   # three\n]\nx = 1\n");
  EXPECT_EQ(Fixture(text).after({take("m.s", "c")}),
            "[m]\ns = [\n  \"a\",  # one\n  \"b\",  # two\n]\nx = 1\n");
  EXPECT_EQ(Fixture(text).after({add("m.s", "d")}),
            "[m]\ns = [\n  \"a\",  # one\n  \"b\",  # two\n  \"c\",   # three\n  \"d\"\n]\nx = 1\n");
  EXPECT_EQ(Fixture("[m]\ns = [\n  \"a\",\n]\n").after({add("m.s", "d")}),
            "[m]\ns = [\n  \"a\",\n  \"d\",\n]\n");
}

TEST(Edit, KeepsCommentsOfElementsThatStay) {
  const std::string text = "[m]\ns = [\"a\", \"b\", # first\n  # own\n  \"c\"] # last\n";
  EXPECT_EQ(Fixture(text).after({take("m.s", "b")}), "[m]\ns = [\"a\", # first\n  # own\n  \"c\"] # last\n");
  EXPECT_EQ(Fixture(text).after({take("m.s", "a")}), "[m]\ns = [\"b\", # first\n  # own\n  \"c\"] # last\n");
  EXPECT_EQ(Fixture(text).after({take("m.s", "c")}), "[m]\ns = [\"a\", \"b\", # first\n  # own\n] # last\n");
  EXPECT_EQ(Fixture(text).after({set("m.s", Value(Value::List{Value("z")}))}),
            "[m]\ns = [\"z\",\n  # own\n] # last\n");
  EXPECT_EQ(Fixture("[m]\ns = [ # open\n  \"a\", # x\n]\n").after({take("m.s", "a")}),
            "[m]\ns = [ # open\n]\n");
  EXPECT_EQ(Fixture("[m]\ns = [\n  \"a\", # x\n]\n").after({take("m.s", "a")}), "[m]\ns = []\n");
}

TEST(Edit, RemovesAKeyWithItsLine) {
  EXPECT_EQ(Fixture(kText).after({unset("model.impl")}),
            "# top\n[model]  # the model\nscope = [\"attn\", \"moe\", \"moe_router\"]\nlayers = "
            "12\n\n[rng]\n  tracker = true\n");
  EXPECT_EQ(Fixture("[m]\ns = [\n 1,\n 2,\n]\nx = 1\n").after({unset("m.s")}), "[m]\nx = 1\n");
}

TEST(Edit, RemovesNeighboursOfAnInlineTable) {
  const std::string text = "m = { a = 1, b = 2, c = 3, d = 4 }\n";
  EXPECT_EQ(Fixture(text).after({unset("m.a"), unset("m.b")}), "m = { c = 3, d = 4 }\n");
  EXPECT_EQ(Fixture(text).after({unset("m.d"), unset("m.c")}), "m = { a = 1, b = 2 }\n");
  EXPECT_EQ(Fixture(text).after({unset("m.b"), unset("m.d")}), "m = { a = 1, c = 3 }\n");
}

TEST(Edit, DropsATableThatOtherChangesEmpty) {
  const KeyChange drop = {KeyChange::Kind::drop_table, "m", {}, {}};
  const std::string text = "[k]\nx = 1\n\n[m]  # why\na = 1\nb = 2\n";
  EXPECT_EQ(Fixture(text).after({unset("m.a"), unset("m.b"), drop}), "[k]\nx = 1\n\n# why\n");
  EXPECT_EQ(Fixture(text).after({unset("m.a"), drop}), "[k]\nx = 1\n\n[m]  # why\nb = 2\n");
  const KeyChange move = {KeyChange::Kind::rename, "m.b", {}, "k.b"};
  EXPECT_EQ(Fixture(text).after({unset("m.a"), move, drop}), "[k]\nx = 1\n# why\nb = 2\n");
}

TEST(Edit, InsertsIntoTheRightTable) {
  EXPECT_EQ(Fixture(kText).after({set("model.te", true)}),
            "# top\n[model]  # the model\nimpl = 'local'   # keep me\nscope = [\"attn\", \"moe\", "
            "\"moe_router\"]\nlayers = 12\nte = "
            "true\n\n[rng]\n  tracker = true\n");
  EXPECT_EQ(Fixture(kText).after({set("rng.seed", 3)}), std::string(kText) + "  seed = 3\n");
  EXPECT_EQ(Fixture(kText).after({set("ddp.check", false)}), std::string(kText) + "\n[ddp]\ncheck = false\n");
  EXPECT_EQ(Fixture("").after({set("ddp.check", false)}), "[ddp]\ncheck = false\n");
  EXPECT_EQ(Fixture("[a]\nx = 1").after({set("a.y", 2)}), "[a]\nx = 1\ny = 2");
  EXPECT_EQ(Fixture("[a]\n[b]\n").after({set("a.y", 2)}), "[a]\ny = 2\n[b]\n");
}

TEST(Edit, InsertedWordsTakeTheQuotesBeside) {
  EXPECT_EQ(Fixture("[a]\nx = 'u'\n").after({set("a.y", "v")}), "[a]\nx = 'u'\ny = 'v'\n");
  EXPECT_EQ(Fixture("[a]\nx = ['u']\n").after({set("a.y", "v")}), "[a]\nx = ['u']\ny = 'v'\n");
  EXPECT_EQ(Fixture("a = {x = 'u'}\n").after({set("a.y", "v")}), "a = {x = 'u', y = 'v'}\n");
  EXPECT_EQ(Fixture("[a]\nx = 'u'\n").after({set("a.y", "it's")}), "[a]\nx = 'u'\ny = \"it's\"\n");
  EXPECT_EQ(Fixture("[a]\nx = 1\n").after({set("a.y", "v")}), "[a]\nx = 1\ny = \"v\"\n");
}

TEST(Edit, SeveralInsertionsShareOneTable) {
  EXPECT_EQ(Fixture("[a]\nx = 1\n").after({set("c.p", 1), set("c.q", 2), set("a.y", 2)}),
            "[a]\nx = 1\ny = 2\n\n[c]\np = 1\nq = 2\n");
}

TEST(Edit, DottedKeysAndInlineTables) {
  EXPECT_EQ(Fixture("model.impl = 'local'\nrng.seed = 1\n").after({set("model.te", true)}),
            "model.impl = 'local'\nmodel.te = true\nrng.seed = 1\n");
  EXPECT_EQ(Fixture("model = { impl = 'local', te = true }\n").after({set("model.x", 1)}),
            "model = { impl = 'local', te = true, x = 1 }\n");
  EXPECT_EQ(Fixture("model = { impl = 'local', te = true }\n").after({unset("model.impl")}),
            "model = { te = true }\n");
  EXPECT_EQ(Fixture("model = { impl = 'local', te = true }\n").after({unset("model.te")}),
            "model = { impl = 'local' }\n");
}

TEST(Edit, KeepsWindowsLineEndings) {
  EXPECT_EQ(Fixture("[a]\r\nx = 1\r\n").after({set("a.y", 2), set("b.z", 3)}),
            "[a]\r\nx = 1\r\ny = 2\r\n\r\n[b]\r\nz = 3\r\n");
}

TEST(Edit, ValuesOfAnExtendedFileAreEditedThere) {
  Fixture fixture("[m]\nx = 1\n");
  fixture.config.settings.at("m.x").origin.kind = OriginKind::extended_file;
  fixture.layer("[m]\ny = 2\n", OriginKind::file);
  EXPECT_EQ(fixture.after({set("m.x", 5)}, 0), "[m]\nx = 5\n");
  EXPECT_EQ(fixture.after({set("m.z", 5)}, 1), "[m]\ny = 2\nz = 5\n");
}

TEST(Edit, UnsetReachesEveryLayer) {
  Fixture fixture("[m]\nx = 1\ny = 1\n");
  fixture.layer("[m]\nx = 2\n", OriginKind::file);
  EXPECT_EQ(fixture.after({unset("m.x")}, 0), "[m]\ny = 1\n");
  EXPECT_EQ(fixture.after({unset("m.x")}, 1), "[m]\n");
}

TEST(Edit, SaysInWordsWhatNoFileHolds) {
  Fixture fixture("[m]\nx = 1\n");
  Setting setting;
  setting.path = "m.y";
  setting.value = Value(true);
  setting.origin.kind = OriginKind::override_argument;
  fixture.config.settings["m.y"] = setting;
  setting.path = "env.NCCL_GRAPH_REGISTER";
  setting.value = Value("1");
  setting.origin.kind = OriginKind::environment;
  fixture.config.settings[setting.path] = setting;
  const EditPlan plan = plan_edits({set("m.y", false), set("env.NCCL_GRAPH_REGISTER", "0"), set("m.x", 2)},
                                   fixture.config, fixture.sources);
  EXPECT_EQ(plan.by_hand, (std::vector<std::string>{"pass `m.y=false` to `--set`",
                                                    "set `NCCL_GRAPH_REGISTER=0` in the environment"}));
  EXPECT_EQ(plan.edits.size(), 1u);
  EXPECT_FALSE(plan.complete());
}

TEST(Edit, RenamesInPlace) {
  EXPECT_EQ(
      Fixture("[m]\nscope = [\"a\"]  # why\n").after({{KeyChange::Kind::rename, "m.scope", {}, "m.modules"}}),
      "[m]\nmodules = [\"a\"]  # why\n");
}

// What a base file says under the old name is no longer read either.
TEST(Edit, RenamesInEveryLayerAndWritesANewValueInPlace) {
  Fixture fixture("[m]\nscope = 1\n");
  fixture.layer("[m]\nscope = 2  # more\n", OriginKind::file);
  const std::vector<KeyChange> changes = {{KeyChange::Kind::rename, "m.scope", {}, "m.modules"},
                                          set("m.modules", 3)};
  EXPECT_EQ(fixture.after(changes, 0), "[m]\nmodules = 1\n");
  EXPECT_EQ(fixture.after(changes, 1), "[m]\nmodules = 3  # more\n");
  const std::vector<KeyChange> away = {{KeyChange::Kind::rename, "m.scope", {}, "n.scope"}};
  EXPECT_EQ(fixture.after(away, 0), "[m]\n\n[n]\nscope = 1\n");
  EXPECT_EQ(fixture.after(away, 1), "[m]\n\n[n]\nscope = 2  # more\n");
}

// Beside a rename the new key's value and the old key's end are said as well: written as the statement
// stands.
TEST(Edit, ARenameThatSaysItsValueKeepsTheText) {
  Fixture fixture("[m]\nscope = [\n  'a',  # first\n  'b',\n]  # why\n");
  const Value list(Value::List{Value("a"), Value("b")});
  EXPECT_EQ(
      fixture.after(
          {set("m.modules", list), unset("m.scope"), {KeyChange::Kind::rename, "m.scope", {}, "m.modules"}}),
      "[m]\nmodules = [\n  'a',  # first\n  'b',\n]  # why\n");
}

// The same value does not make two keys one: nobody said that the one becomes the other.
TEST(Edit, KeysOfOneValueAreNoRename) {
  Fixture numbers("[m]\nlayers = 8  # of the model\nranks = 2\n");
  EXPECT_EQ(numbers.after({set("m.groups", 8), unset("m.layers")}), "[m]\nranks = 2\ngroups = 8\n");
  Fixture words("[m]\nimpl = 'full'  # graphs\nranks = 2\n");
  EXPECT_EQ(words.after({unset("m.impl"), set("m.granularity", "full")}),
            "[m]\nranks = 2\ngranularity = \"full\"\n");
  Fixture lists("[m]\nscope = ['mlp']  # graphs\nranks = 2\n");
  EXPECT_EQ(lists.after({unset("m.scope"), set("m.modules", Value(Value::List{Value("mlp")}))}),
            "[m]\nranks = 2\nmodules = [\"mlp\"]\n");
}

TEST(Edit, KeepsTheCommentOfAnUnsetKeyWhereAsked) {
  const auto open = [](std::string path) {
    return KeyChange{KeyChange::Kind::unset, std::move(path), {}, {}, true};
  };
  EXPECT_EQ(Fixture("[m]\r\n  a = \"?\"  # why\r\nb = 1\r\n").after({open("m.a")}),
            "[m]\r\n  # why\r\nb = 1\r\n");
  EXPECT_EQ(Fixture("[m]\na = \"?\"\nb = 1\n").after({open("m.a")}), "[m]\nb = 1\n");
  EXPECT_EQ(Fixture("m = { a = \"?\", b = 1 }  # both\n").after({open("m.a")}), "m = { b = 1 }  # both\n");
  EXPECT_EQ(Fixture("[m]\na = \"# no comment\"").after({open("m.a")}), "[m]\n");
}

TEST(Edit, SaysWhichArgumentARenameReplaces) {
  Fixture fixture("[m]\nranks = 2\n");
  Setting passed;
  passed.path = "m.scope";
  passed.value = Value("a");
  passed.origin.kind = OriginKind::override_argument;
  fixture.config.settings[passed.path] = passed;
  const EditPlan plan =
      plan_edits({{KeyChange::Kind::rename, "m.scope", {}, "m.modules"}}, fixture.config, fixture.sources);
  EXPECT_TRUE(plan.edits.empty());
  EXPECT_EQ(plan.by_hand,
            (std::vector<std::string>{"pass `m.modules=\"a\"` to `--set` in place of `m.scope`"}));
}

TEST(Apply, RefusesOverlapsAndOutside) {
  EXPECT_FALSE(apply_edits("abcdef", {{{0, 0, 3}, "x"}, {{0, 2, 4}, "y"}}));
  EXPECT_FALSE(apply_edits("abc", {{{0, 2, 9}, "x"}}));
  EXPECT_EQ(apply_edits("abc", {{{0, 1, 2}, "X"}, {{0, 1, 2}, "X"}}), "aXc");
}

TEST(Apply, DiffHasContextAndCounts) {
  EXPECT_EQ(unified_diff("f", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n"),
            "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n");
  EXPECT_EQ(unified_diff("f", "a\n", "a\n"), "");
  EXPECT_EQ(unified_diff("f", "a\n", "a\nb\n"), "--- f\n+++ f\n@@ -1,1 +1,2 @@\n a\n+b\n");
}

}  // namespace
}  // namespace capstan
