#include "compiler/schema/schema.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compiler/schema/schema_binary.h"
#include "compiler/schema/schema_load.h"
#include "compiler/schema/type_words.h"

namespace capstan {
namespace {

constexpr const char* kModelKeys = R"(
[impl]
doc = "implementation"
effect = "speed"
[[impl.ranges]]
component = "megatron-core"
since = "0.16"
until = "0.18"
type = "str"
values = ["none", "local"]
default = "none"
[[impl.ranges]]
component = "megatron-core"
since = "0.18"
type = "str"
values = ["none", "local", "full"]
default = "none"

[scope]
effect = "speed"
renamed_to = "model.modules"
[[scope.ranges]]
component = "megatron-core"
type = "list<str>?"
default_none = true

[modules]
effect = "speed"
[[modules.ranges]]
component = "megatron-core"
since = "0.18"
type = "list<str>?"
default = []

[flag]
effect = "run"
[[flag.ranges]]
component = "megatron-core"
type = "bool"
default = false
[[flag.ranges]]
component = "megatron-bridge"
since = "0.5"
type = "bool?"
default = true
)";

constexpr const char* kStacks = R"(
["bridge-0.4"]
frontend = "bridge"
note = "one"
["bridge-0.4".components]
megatron-core = "0.17.1"
megatron-bridge = "0.4.2"
["bridge-0.5"]
frontend = "bridge"
["bridge-0.5".components]
megatron-core = "0.18.2"
megatron-bridge = "0.5.1"
)";

struct Loaded {
  SourceMap sources;
  Sink sink;
  Schema schema;
};

Loaded load(const std::string& keys, const std::string& stacks = kStacks) {
  Loaded loaded;
  loaded.schema =
      load_schema({{"keys/model.toml", keys}, {"stacks.toml", stacks}}, loaded.sources, loaded.sink);
  return loaded;
}

std::string first_message(const Loaded& loaded) {
  return loaded.sink.diagnostics().empty() ? "" : loaded.sink.diagnostics().front().message;
}

TEST(Schema, KnowsAKeyReleaseByRelease) {
  const Loaded loaded = load(kModelKeys);
  ASSERT_FALSE(loaded.sink.has_errors()) << first_message(loaded);
  const SchemaView old_view(loaded.schema, *loaded.schema.find_stack("bridge-0.4"));
  const SchemaView new_view(loaded.schema, *loaded.schema.find_stack("bridge-0.5"));
  EXPECT_EQ(old_view.find("model.impl").spec->values.size(), 2u);
  EXPECT_EQ(new_view.find("model.impl").spec->values.size(), 3u);
  EXPECT_EQ(old_view.find("model.modules").spec, nullptr);
  EXPECT_NE(old_view.find("model.modules").info, nullptr);
  EXPECT_EQ(old_view.find("model.nothing").info, nullptr);
}

TEST(Schema, TheFrontEndsOwnRangeWins) {
  const Loaded loaded = load(kModelKeys);
  const KeyInfo& flag = *loaded.schema.find("model.flag");
  EXPECT_EQ(spec_for(flag, *loaded.schema.find_stack("bridge-0.4"))->default_value, Value(false));
  EXPECT_EQ(spec_for(flag, *loaded.schema.find_stack("bridge-0.5"))->default_value, Value(true));
}

TEST(Schema, ARenamedKeyIsNativeUntilItsSuccessorComes) {
  const Loaded loaded = load(kModelKeys);
  const KeyInfo& scope = *loaded.schema.find("model.scope");
  EXPECT_TRUE(is_native(scope, *loaded.schema.find_stack("bridge-0.4"), loaded.schema));
  EXPECT_FALSE(is_native(scope, *loaded.schema.find_stack("bridge-0.5"), loaded.schema));
}

TEST(Schema, CoreAloneTakesKeysThatOnlyFrontEndsHave) {
  const Loaded loaded = load(
      "[only_bridge]\neffect = \"run\"\n[[only_bridge.ranges]]\ncomponent = \"megatron-bridge\"\ntype = "
      "\"int\"\ndefault = 1\n"
      "[later]\neffect = \"run\"\n[[later.ranges]]\ncomponent = \"megatron-core\"\nsince = \"0.18\"\ntype = "
      "\"int\"\ndefault = 1\n",
      "[core]\nfrontend = \"core\"\n[core.components]\nmegatron-core = \"0.17\"\n");
  const SchemaView view(loaded.schema, loaded.schema.stacks().front());
  EXPECT_NE(view.find("model.only_bridge").spec, nullptr);
  EXPECT_EQ(view.find("model.later").spec, nullptr);
}

TEST(Schema, SurvivesItsBinaryForm) {
  const Loaded loaded = load(kModelKeys);
  const std::string bytes = encode_schema(loaded.schema);
  const auto decoded = decode_schema(bytes);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(encode_schema(*decoded), bytes);
  EXPECT_EQ(decoded->keys().size(), 4u);
  EXPECT_EQ(decoded->find("model.scope")->renamed_to, "model.modules");
  EXPECT_TRUE(decoded->find("model.scope")->ranges.front().spec.type.list_string);
  EXPECT_EQ(decoded->find_stack("bridge-0.5")->version_of("megatron-core")->patch, 2);
  EXPECT_EQ(decoded->components(), loaded.schema.components());
}

TEST(Schema, RefusesTruncatedBytes) {
  const std::string bytes = encode_schema(load(kModelKeys).schema);
  for (std::size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_FALSE(decode_schema(std::string_view(bytes).substr(0, length))) << length;
  }
  EXPECT_FALSE(decode_schema(bytes + "x"));
}

TEST(Schema, ReportsMalformedKeyFiles) {
  const auto message = [](const std::string& keys) { return first_message(load(keys)); };
  const std::string head = "[k]\neffect = \"run\"\n[[k.ranges]]\ncomponent = \"megatron-core\"\n";
  EXPECT_EQ(message(head + "type = \"integer\"\n"), "a range of `model.k` has the unknown type `integer`");
  EXPECT_EQ(message(head + "type = \"int\"\nsince = \"soon\"\n"),
            "`since` of a range of `model.k` must be a version such as \"0.16\"");
  EXPECT_EQ(message(head + "type = \"int\"\ndefault = 1\nrequired = true\n"),
            "a range of `model.k` has more than one of default, default_none, default_text, required");
  EXPECT_EQ(message(head + "type = \"int\"\nsince = \"0.18\"\nuntil = \"0.17\"\n"),
            "a range of `model.k` is empty: `until` is not after `since`");
  EXPECT_EQ(
      message(
          head +
          "type = \"int\"\n[[k.ranges]]\ncomponent = \"megatron-core\"\nsince = \"0.18\"\ntype = \"int\"\n"),
      "two ranges of `model.k` overlap for megatron-core");
  EXPECT_EQ(message(head + "type = \"int\"\ncolour = 1\n"), "a range of `model.k` has no field `colour`");
  EXPECT_EQ(message("[k]\neffect = \"slow\"\n[[k.ranges]]\ncomponent = \"megatron-core\"\ntype = \"int\"\n"),
            "`model.k` needs an `effect`: model, free, memory, speed, numerics or run");
  EXPECT_EQ(message("[k]\neffect = \"run\"\n"), "`model.k` has no `ranges`");
  EXPECT_EQ(message("[k]\neffect = \"run\"\nrenamed_to = \"model.z\"\n[[k.ranges]]\ncomponent = \"x\"\ntype "
                    "= \"int\"\n"),
            "`model.k` was renamed to `model.z`, which is no key");
  EXPECT_EQ(load("[k").sink.diagnostics().front().code, "RU007");
}

TEST(Schema, ReportsMalformedStacks) {
  EXPECT_EQ(first_message(load("", "[s]\nfrontend = \"nemo\"\n[s.components]\n")),
            "stack `s` needs a `frontend`: bridge, megatron-lm or core");
  EXPECT_EQ(first_message(load("", "[s]\nfrontend = \"core\"\n")), "stack `s` has no `components`");
  EXPECT_EQ(first_message(load("", "[s]\nfrontend = \"core\"\n[s.components]\nmegatron-core = \"x\"\n")),
            "`megatron-core` of stack `s` must be a version such as \"0.16\"");
}

TEST(Schema, TheBuiltinOneHoldsTheReleasesThatRulesSpeakOf) {
  const Schema& schema = builtin_schema();
  EXPECT_GE(schema.keys().size(), 800u);
  for (const char* name : {"bridge-0.2", "bridge-0.6", "bridge-head", "megatron-lm-0.14", "megatron-lm-0.19",
                           "core-0.14", "core-0.19", "core-head"}) {
    EXPECT_NE(schema.find_stack(name), nullptr) << name;
  }
  // Megatron Core's release notes: the key was renamed with 0.18.
  const KeyInfo* modules = schema.find("model.cuda_graph_modules");
  ASSERT_NE(modules, nullptr);
  EXPECT_EQ(spec_for(*modules, *schema.find_stack("core-0.17")), nullptr);
  EXPECT_NE(spec_for(*modules, *schema.find_stack("core-0.18")), nullptr);
  // Every default must fit its own key's type.
  EXPECT_TRUE(std::is_sorted(schema.keys().begin(), schema.keys().end(),
                             [](const KeyInfo& a, const KeyInfo& b) { return a.path < b.path; }));
}

TEST(TypeNotation, ReadsUnionsListsAndNone) {
  const auto type = parse_type("int | list<int | str> | none");
  ASSERT_TRUE(type);
  EXPECT_TRUE(type->integer && type->list && type->list_integer && type->list_string && type->none);
  EXPECT_FALSE(type->floating || type->string || type->list_any);
  EXPECT_TRUE(parse_type("str?")->none);
  EXPECT_TRUE(parse_type("list<list<int>>")->list_any);
  EXPECT_TRUE(parse_type("dtype")->dtype);
  for (const char* text : {"", "integer", "list<", "list<int", "int |", "list<>", "int>"}) {
    EXPECT_FALSE(parse_type(text)) << text;
  }
}

TEST(TypeNotation, HasWords) {
  EXPECT_EQ(type_words(*parse_type("int | list<int>?")), "an integer, a list of integers or none");
  EXPECT_EQ(type_words(*parse_type("float")), "a number");
  EXPECT_EQ(type_words(*parse_type("bool | str")), "a boolean or a string");
}

TEST(Nearest, FindsTypingMistakesOnly) {
  const std::vector<std::string> names = {"num_layers", "hidden_size", "seed"};
  EXPECT_EQ(nearest("num_layer", names), "num_layers");
  EXPECT_EQ(nearest("hiden_size", names), "hidden_size");
  EXPECT_EQ(nearest("hidden_szie", names), "hidden_size");  // neighbours swapped: one edit
  EXPECT_EQ(nearest("sed", names), "seed");
  EXPECT_EQ(nearest("colour", names), "");
  EXPECT_EQ(nearest("", names), "");
  EXPECT_EQ(nearest(std::string(100000, 'a'), names), "");
}

TEST(Nearest, IsTheWordThatDiffersInCaseOrMarksOnly) {
  const std::vector<std::string> norms = {"LayerNorm", "RMSNorm"};
  EXPECT_EQ(nearest("rmsnorm", norms), "RMSNorm");
  EXPECT_EQ(nearest("rms_norm", norms), "RMSNorm");
  EXPECT_EQ(nearest("layer-norm", norms), "LayerNorm");
  EXPECT_EQ(nearest("RoPE", {"learned_absolute", "none", "rope"}), "rope");
  EXPECT_EQ(nearest("Attn_", {"attn"}), "attn");
  // before another word that takes fewer edits
  EXPECT_EQ(nearest("ABc", {"ABd", "abc"}), "abc");
  EXPECT_EQ(nearest("abc", {"ABC", "abc"}), "abc");
  EXPECT_EQ(nearest("__", {"seed", ""}), "");
}

}  // namespace
}  // namespace capstan
