#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/effective.h"
#include "compiler/config/exchange/shell_quoted.h"
#include "compiler/config/exchange/write_config.h"
#include "tests/unit/config/read_fixture.h"

namespace capstan {
namespace {

/// How many random configs the round trips take; CAPSTAN_ROUND_TRIPS asks for more.
int round_trips() {
  const char* text = std::getenv("CAPSTAN_ROUND_TRIPS");
  return text == nullptr ? 60 : std::max(1, std::atoi(text));
}

TEST(ShellQuoted, KeepsEveryCharacter) {
  EXPECT_EQ(shell_quoted(""), "''");
  EXPECT_EQ(shell_quoted("a b$X`c`\\"), "'a b$X`c`\\'");
  EXPECT_EQ(shell_quoted("it's"), "'it'\\''s'");
}

TEST(WriteArguments, SaysKeysThatBearTheNameOfAnArgument) {
  const auto written = [](const std::string& toml) {
    const Read read("a.toml", toml, "megatron-lm-0.19");
    const WrittenConfig out = write_config(read.config, read.view, ExportFormat::megatron_args);
    std::string text = out.text;
    for (const WrittenConfig::LeftOut& left : out.left_out) {
      if (left.kind == WrittenConfig::LeftOut::Kind::lost) text += "lost " + left.path + "\n";
    }
    return text;
  };
  const std::string plain = written("");  // what keeps Megatron-LM's own choices away
  const auto has = [&](const std::string& toml, const std::string& line) {
    return ("\n" + written(toml)).find("\n" + line + "\n") != std::string::npos;
  };
  EXPECT_TRUE(has("[model]\nswiglu = true\n", "--swiglu"));
  EXPECT_TRUE(has("[model]\nnum_experts = 4\n", "--num-experts 4"));
  EXPECT_TRUE(has("[model]\ndisable_bias_linear = true\n", "--disable-bias-linear"));
  EXPECT_TRUE(has("[arguments]\nddp_bucket_size = 7\n", "--ddp-bucket-size 7"));
  EXPECT_EQ(written("[model]\nswiglu = false\n"), plain);
  // At odds with what the argument sets: listed, not said.
  EXPECT_TRUE(has("[model]\nswiglu = true\nactivation_func = \"quick_gelu\"\n", "lost model.swiglu"));
  EXPECT_TRUE(has("[model]\nmoe_layer_freq = [0, 0, 1]\n", "--moe-layer-freq '([0]*2+[1]*1)'"));
  EXPECT_TRUE(has("[model]\nwindow_size = [128, -1]\n", "--window-size '(128,-1)'"));
}

TEST(WriteConfig, LeavesOutKeysThatPythonCannotName) {
  Config config;
  const std::string path = "optimizer_config_override_provider.a-b";
  config.settings[path] = {path, Value(1), {}, {}, {}, {}};
  const WrittenConfig written = write_config(config, stack_view("bridge-0.6"), ExportFormat::python);
  EXPECT_EQ(written.text, "");
  ASSERT_EQ(written.left_out.size(), 1u);
  EXPECT_EQ(written.left_out[0].path, path);
}

TEST(WriteConfig, LeavesOutBytesThatAreNoText) {
  Config config;
  config.settings["checkpoint.save"] = {"checkpoint.save", Value("caf\xE9"), {}, {}, {}, {}};
  for (const ExportFormat format :
       {ExportFormat::toml, ExportFormat::bridge_yaml, ExportFormat::python, ExportFormat::hydra}) {
    const WrittenConfig written = write_config(config, stack_view("bridge-0.6"), format);
    EXPECT_EQ(written.text.find('\xE9'), std::string::npos);
    ASSERT_EQ(written.left_out.size(), 1u);
    EXPECT_EQ(written.left_out[0].path, "checkpoint.save");
  }
}

TEST(WriteConfig, ListsWhatOnlyCapstanReads) {
  const Read read("a.toml",
                  "[target]\nstack = \"bridge-0.4\"\ngpu = \"h100\"\n[cluster]\nnodes = 2\n[model]\n"
                  "num_layers = 2\n",
                  "bridge-0.4");
  std::string lost;
  for (const auto& left : write_config(read.config, read.view, ExportFormat::hydra).left_out)
    lost += left.path + ";";
  EXPECT_EQ(lost, "cluster.nodes;target.gpu;target.stack;");
}

// --- round trips ---

class RandomSettings {
 public:
  explicit RandomSettings(const SchemaView& view) : view_(view) {
    for (const KeyInfo& key : view.schema().keys()) {
      const std::string section(section_of(key.path));
      if (section == "target" || section == "cluster" || section == "execute" ||
          section == kEnvironmentSection)
        continue;
      if (!key.renamed_to.empty()) continue;  // comes back under its new name
      if (view.find(key.path).spec != nullptr && key.path.find('.') != std::string::npos)
        paths_.push_back(key.path.ends_with(".*") ? key.path.substr(0, key.path.size() - 1) + "field"
                                                  : key.path);
    }
  }

  Config next(std::mt19937& random) const {
    Config config;
    const std::size_t count = 1 + random() % 40;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& path = paths_[random() % paths_.size()];
      Setting setting;
      setting.path = path;
      setting.value = value_for(*view_.find(path).spec, random);
      config.settings[path] = setting;
    }
    if (random() % 2 == 0) {
      Setting setting;
      setting.path = "env.NCCL_TEST";
      setting.value = Value(text(random));
      config.settings[setting.path] = setting;
    }
    return config;
  }

 private:
  static std::string text(std::mt19937& random) {
    static const std::vector<std::string> pieces = {"a", "Z",  "0",    " ",    "'", "\"",   "\\", "#",
                                                    ":", ",",  "=",    "[",    "}", "${X}", "--", "\xC3\xA9",
                                                    "$", "-1", "true", "null", "%", "\t"};
    std::string out;
    for (std::size_t i = random() % 6; i > 0; --i) out += pieces[random() % pieces.size()];
    return out;
  }
  static std::int64_t integer(std::mt19937& random) {
    return static_cast<std::int64_t>(random() % 2000) - 1000;
  }
  static double floating(std::mt19937& random) {
    return static_cast<double>(random()) / 1e7 * (random() % 2 == 0 ? 1 : 1e-12);
  }

  static Value value_for(const KeySpec& spec, std::mt19937& random) {
    std::vector<Value> options;
    const TypeSet& type = spec.type;
    if (type.boolean) options.emplace_back(random() % 2 == 0);
    if (type.integer) options.emplace_back(integer(random));
    if (type.floating) options.emplace_back(floating(random));
    if (type.string && spec.values.empty()) options.emplace_back(text(random));
    if (!spec.values.empty()) options.emplace_back(spec.values[random() % spec.values.size()]);
    if (type.list && (type.list_integer || type.list_any))
      options.emplace_back(Value::List{Value(integer(random)), Value(integer(random))});
    if (type.list && type.list_string) {
      options.emplace_back(
          Value::List{Value(spec.values.empty() ? text(random) : spec.values[0]), Value("x")});
    }
    if (type.none || options.empty()) options.emplace_back();
    return options[random() % options.size()];
  }

  const SchemaView& view_;
  std::vector<std::string> paths_;
};

std::map<std::string, std::string> settings_of(const Config& config) {
  std::map<std::string, std::string> out;
  for (const auto& [path, setting] : config.settings) {
    if (section_of(path) != "target") out[path] = to_text(setting.value);
  }
  return out;
}

TEST(RoundTrip, RandomConfigsSurviveEveryFormat) {
  const SchemaView& view = stack_view("bridge-0.4");
  const RandomSettings configs(view);
  std::mt19937 random(20261129);
  const std::vector<std::pair<ExportFormat, ConfigFormat>> formats = {
      {ExportFormat::toml, ConfigFormat::toml},
      {ExportFormat::bridge_yaml, ConfigFormat::bridge_yaml},
      {ExportFormat::python, ConfigFormat::python},
      {ExportFormat::hydra, ConfigFormat::hydra}};
  for (int i = 0; i < round_trips(); ++i) {
    const Config config = configs.next(random);
    for (const auto& [to, from] : formats) {
      const WrittenConfig written = write_config(config, view, to);
      auto expected = settings_of(config);
      for (const WrittenConfig::LeftOut& left : written.left_out) expected.erase(left.path);
      // TOML says none as the word "none", or not at all where it is the default; binding reads it so.
      if (to == ExportFormat::toml)
        std::erase_if(expected, [](const auto& entry) { return entry.second == "none"; });
      if (expected.empty()) continue;
      const Read back("x", written.text, "bridge-0.4", from);
      ASSERT_TRUE(back.good) << export_format_name(to) << "\n" << written.text << back.findings();
      auto found = settings_of(back.config);
      if (to == ExportFormat::toml) {
        std::erase_if(found, [&](const auto& entry) {
          return entry.second == "\"none\"" && !expected.contains(entry.first);
        });
      }
      ASSERT_EQ(found, expected) << export_format_name(to) << "\n" << written.text;
    }
  }
}

TEST(RoundTrip, RandomConfigsSurviveArguments) {
  const SchemaView& view = stack_view("megatron-lm-0.19");
  const RandomSettings configs(view);
  std::mt19937 random(20261130);
  std::size_t said = 0, left = 0;
  for (int i = 0; i < round_trips(); ++i) {
    Config config = configs.next(random);
    config.settings.erase("env.NCCL_TEST");
    const WrittenConfig written = write_config(config, view, ExportFormat::megatron_args);
    if (written.text.empty()) continue;
    const Read back("x.args", written.text, "megatron-lm-0.19", ConfigFormat::megatron_args);
    ASSERT_TRUE(back.good) << written.text << back.findings();
    ASSERT_EQ(back.findings(), "") << written.text;
    std::set<std::string> excused;
    for (const WrittenConfig::LeftOut& entry : written.left_out) excused.insert(entry.path);
    left += excused.size();
    // Every key that is not listed as left out has the same effective value on both sides.
    const auto before = effective_config(config, view), after = effective_config(back.config, view);
    for (const EffectiveDifference& difference : compare(before, after)) {
      ASSERT_TRUE(excused.contains(difference.path))
          << difference.path << ": "
          << (difference.before == nullptr ? "absent" : to_text(difference.before->value)) << " -> "
          << (difference.after == nullptr ? "absent" : to_text(difference.after->value)) << "\n"
          << written.text;
    }
    said += config.settings.size();
  }
  EXPECT_GT(said, left);
}

TEST(EffectiveConfig, DigestFollowsValuesOnly) {
  const SchemaView& view = stack_view("bridge-0.4");
  const auto digest = [&](std::string text) {
    SourceMap sources;
    Sink sink;
    const SourceId id = sources.add("a.toml", std::move(text), SourceKind::file);
    auto layers = load_layers(id, sources, disk_reader(), sink);
    return effective_digest(effective_config(compose(*layers, sink), view));
  };
  EXPECT_EQ(digest("[model]\nnum_layers = 4\n"), digest("# c\n[model]\n\n  num_layers = 4 # x\n"));
  EXPECT_EQ(digest("[model]\nhidden_dropout = 1\n"), digest("[model]\nhidden_dropout = 1.0\n"));
  EXPECT_EQ(digest(""), digest("[model]\nhidden_dropout = 0.1\n"));  // the default
  EXPECT_NE(digest(""), digest("[model]\nhidden_dropout = 0.2\n"));
  EXPECT_EQ(digest(""), digest("[execute]\nsteps = 5\n"));
}

}  // namespace
}  // namespace capstan
