// What no reader can understand is said where it stands, and nothing else of the text is lost over it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>

#include "compiler/config/exchange/read_config.h"

namespace capstan {
namespace {

const SchemaView& view_of(ConfigFormat format) {
  static const SchemaView lm(builtin_schema(), *builtin_schema().find_stack("megatron-lm-0.19"));
  static const SchemaView bridge(builtin_schema(), *builtin_schema().find_stack("bridge-0.4"));
  return std::string(frontend_of_format(format)) == "megatron-lm" ? lm : bridge;
}

/// "line:column CODE `text`; ..." of the findings.
struct ReadText {
  SourceMap sources;
  Sink sink;
  ReadRecord record;
  Config config;

  ReadText(ConfigFormat format, std::string text) {
    const SourceId id = sources.add("x", std::move(text), SourceKind::file);
    const auto layers = read_config(id, format, view_of(format), sources, disk_reader(), sink, record);
    if (layers) config = compose(*layers, sink);
  }
  std::string findings() const {
    std::string out;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      const Span place = diagnostic.labels.at(0).span;
      const LineColumn at = sources[place.source].locate(place.begin);
      out += (out.empty() ? "" : "; ") + std::to_string(at.line) + ":" + std::to_string(at.column) + " " +
             diagnostic.code + " `" + std::string(sources.text(place)) + "`";
    }
    return out;
  }
  std::string value(const char* path) const {
    const Setting* setting = config.find(path);
    return setting == nullptr ? "absent" : to_text(setting->value);
  }
};

TEST(BadInput, ByteOrderMarksAndWindowsLineEndsHideNothing) {
  const std::string mark = "\xEF\xBB\xBF";
  const std::pair<ConfigFormat, std::string> texts[] = {
      {ConfigFormat::toml, "[model]\r\nnum_layers = 2\r\nhidden_size = 64\r\n"},
      {ConfigFormat::megatron_args, "--num-layers 2\r\n--hidden-size 64\r\n"},
      {ConfigFormat::megatron_args, "torchrun train.py --num-layers 2 \\\r\n  --hidden-size 64\r\n"},
      {ConfigFormat::functional_test, "MODEL_ARGS:\r\n  --num-layers: 2\r\n  --hidden-size: 64\r\n"},
      {ConfigFormat::bridge_yaml, "model:\r\n  num_layers: 2\r\n  hidden_size: 64\r\n"},
      {ConfigFormat::python, "cfg.model.num_layers = 2\r\ncfg.model.hidden_size = 64\r\n"},
      {ConfigFormat::hydra, "model.num_layers=2\r\nmodel.hidden_size=64\r\n"},
      {ConfigFormat::hf_config, "{\"num_hidden_layers\": 2,\r\n\t\"hidden_size\": 64}\r\n"}};
  for (const auto& [format, text] : texts) {
    const ReadText read(format, mark + text);
    // A model without `model_type` is of no family that is known.
    EXPECT_EQ(read.findings(), format == ConfigFormat::hf_config ? "1:1 EX001 ``" : "")
        << format_name(format);
    EXPECT_EQ(read.value("model.num_layers"), "2") << format_name(format);
    EXPECT_EQ(read.value("model.hidden_size"), "64") << format_name(format);
  }
}

TEST(BadInput, QuotesThatDoNotCloseAreNamedAtTheirOpening) {
  EXPECT_EQ(ReadText(ConfigFormat::bridge_yaml, "model:\n  num_layers: \"2\n  hidden_size: 64\n").findings(),
            "2:15 SY007 `\"`");
  EXPECT_EQ(ReadText(ConfigFormat::functional_test, "MODEL_ARGS:\n  --num-layers: '2\n").findings(),
            "2:17 SY007 `'`");
  EXPECT_EQ(ReadText(ConfigFormat::hf_config, "{\"hidden_size\": 64, \"model_type\": \"llama}\n").findings(),
            "1:35 SY007 `\"`");
  EXPECT_EQ(ReadText(ConfigFormat::megatron_args, "t.py --a 1 \\\n --num-layers \"2 --b\n").findings(),
            "2:15 SY008 `\"`");
  EXPECT_EQ(ReadText(ConfigFormat::python, "cfg.model.a = 1\ncfg.model.b = 'x\n").findings(),
            "2:15 SY009 `'`");
  EXPECT_EQ(ReadText(ConfigFormat::hydra, "model.num_layers=2\nmodel.x='y\n").findings(), "2:11 SY005 ``");
  EXPECT_EQ(ReadText(ConfigFormat::toml, "[model]\nx = \"y\n").findings().substr(0, 10), "2:5 SY001 ");
}

TEST(BadInput, WhatStandsTwiceIsNamed) {
  EXPECT_EQ(ReadText(ConfigFormat::bridge_yaml, "model:\n  num_layers: 2\n  num_layers: 4\n").findings(),
            "3:3 EX007 `num_layers`");
  EXPECT_EQ(ReadText(ConfigFormat::hf_config, "{\"hidden_size\": 64,\n \"hidden_size\": 128}").findings(),
            "2:2 EX007 `\"hidden_size\"`; 1:1 EX001 ``");
  const ReadText arguments(
      ConfigFormat::megatron_args,
      "--num-layers 2 --hidden-size 64 --bf16\n--num-layers 4 --hidden-size 64 --bf16\n");
  EXPECT_EQ(arguments.findings(), "2:1 EX007 `--num-layers`");  // the others say the same again
  EXPECT_EQ(arguments.value("model.num_layers"), "4");
  const ReadText overrides(ConfigFormat::hydra,
                           "model.num_layers=2\nmodel.hidden_size=64\n+model.num_layers=4\n"
                           "model.hidden_size=64\n");
  EXPECT_EQ(overrides.findings(), "3:2 EX007 `model.num_layers`");
  EXPECT_EQ(overrides.value("model.num_layers"), "4");
  const ReadText recipe(ConfigFormat::python, "cfg.env_vars = {'A': '1', 'A': '2'}\n");
  EXPECT_EQ(recipe.findings(), "1:27 EX007 `'A'`");
  EXPECT_EQ(recipe.value("env.A"), "\"2\"");
}

TEST(BadInput, VariablesThatAreNoPlainValuesAreOpen) {
  const ReadText test(ConfigFormat::functional_test,
                      "ENV_VARS:\n  A: [1]\n  B: 2\nMODEL_ARGS:\n  --bf16: true\n");
  EXPECT_EQ(test.findings(), "2:6 EX002 `[1]`");
  EXPECT_EQ(test.value("env.B"), "\"2\"");
  EXPECT_EQ(
      ReadText(ConfigFormat::functional_test, "ENV_VARS:\n- A\nMODEL_ARGS:\n  --bf16: true\n").findings(),
      "2:1 EX002 `- A`");
  const ReadText run_config(ConfigFormat::bridge_yaml, "env_vars:\n  A: [1]\n  B: 2\n");
  EXPECT_EQ(run_config.findings(), "2:6 EX004 `[1]`");
  EXPECT_EQ(run_config.value("env.A"), "\"?\"");
  EXPECT_EQ(run_config.value("env.B"), "\"2\"");
  const ReadText overrides(ConfigFormat::hydra, "++env_vars.A=[1]\n++env_vars.B=2\n");
  EXPECT_EQ(overrides.findings(), "1:14 EX004 `[1]`");
  EXPECT_EQ(overrides.value("env.A"), "\"?\"");
  const ReadText recipe(ConfigFormat::python,
                        "cfg.env_vars = {'A': [1]}\ncfg.env_vars['B'] = f()\nos.environ['C'] = 'x'\n");
  EXPECT_EQ(recipe.findings(), "1:22 EX004 `[1]`; 2:21 EX004 `f()`");
  EXPECT_EQ(recipe.value("env.A") + recipe.value("env.B") + recipe.value("env.C"), "\"?\"\"?\"\"x\"");
}

TEST(BadInput, RecipesThatSetUnknownKeysSaySo) {
  const ReadText recipe(ConfigFormat::python,
                        "cfg.model.num_layers = 2\ncfg[name].x = 1\ncfg.model[name] = 1\nprepare(cfg)\n"
                        "cfg['model']['hidden_size'] = 64\n");
  EXPECT_EQ(recipe.findings(),
            "4:1 EX006 `prepare(cfg)`; 2:1 EX004 `cfg[name].x`; 3:1 EX004 `cfg.model[name]`");
  EXPECT_EQ(recipe.value("model.hidden_size"), "64");
}

TEST(BadInput, RecipesAreNotTypeChecked) {
  const ReadText recipe(ConfigFormat::python,
                        "cfg.model.attention_backend = None\ncfg.train.manual_gc_eval = 100\n"
                        "cfg.model.num_layers = 'x'\ncfg.model.num_query_groups = None\n");
  EXPECT_EQ(recipe.findings(), "1:31 EX004 `None`; 2:28 EX004 `100`");
  EXPECT_EQ(recipe.value("model.attention_backend") + recipe.value("train.manual_gc_eval"), "\"?\"\"?\"");
  EXPECT_EQ(recipe.value("model.num_layers"), "\"x\"");       // told where types are checked
  EXPECT_EQ(recipe.value("model.num_query_groups"), "none");  // which this key takes
}

TEST(BadInput, KeysThatARecipesBaseMaySetAreOpen) {
  const auto open = [](const char* text) {
    ReadText recipe(ConfigFormat::python, text);
    open_unset_keys(recipe.record, view_of(ConfigFormat::python), recipe.config);
    const auto has = [&](const char* path) {
      const auto& keys = recipe.config.open;
      return std::find(keys.begin(), keys.end(), path) != keys.end();
    };
    return std::string(has("model.num_layers") ? "set " : "") + (has("model.hidden_size") ? "model " : "") +
           (has("ddp.bucket_size") ? "ddp " : "") +
           (has("execute.steps") || has("cluster.nodes") ? "own" : "");
  };
  EXPECT_EQ(open("cfg.model.num_layers = 2\n"), "");
  EXPECT_EQ(open("cfg = ConfigContainer(train=TrainingConfig(train_iters=1))\ncfg.model.num_layers = 2\n"),
            "");
  EXPECT_EQ(open("cfg = base()\ncfg.model.num_layers = 2\n"), "model ddp ");
  EXPECT_EQ(open("cfg.model.num_layers = 2\nprepare(cfg)\n"), "model ddp ");
  EXPECT_EQ(open("def f(cfg):\n    cfg.model.num_layers = 2\n"), "model ddp ");
  EXPECT_EQ(open("cfg.model.num_layers = 2\ncfg[x].y = 1\n"), "model ddp ");
  EXPECT_EQ(open("cfg.model = make()\ncfg.model.num_layers = 2\n"), "model ");
  // A class whose defaults are not known; of Bridge's own those of the section are.
  EXPECT_EQ(open("cfg.model = GPT()\ncfg.model.num_layers = 2\n"), "model ");
  EXPECT_EQ(open("cfg.model = GPT(num_layers=2)\n"), "model ");
  EXPECT_EQ(open("cfg = ConfigContainer(model=GPT(num_layers=2))\n"), "model ");
  EXPECT_EQ(open("cfg.model = providers.GPTModelProvider(num_layers=2)\n"), "");
  EXPECT_EQ(open("cfg.model = GPT()\ncfg.model = GPTModelProvider(num_layers=2)\n"), "");
  EXPECT_EQ(open("cfg.model.num_layers = 2\ncfg.ddp = Other()\n"), "ddp ");
}

TEST(BadInput, ConfigsThatAreNotReadAreNamed) {
  const ReadText recipe(
      ConfigFormat::python,
      "def f():\n    args.a.b = 1\n    old.model.num_layers = 2\n    old.ddp.bucket_size = 1\n"
      "    cfg.model.num_layers = 4\n    return cfg\n");
  EXPECT_EQ(recipe.value("model.num_layers"), "4");
  EXPECT_EQ(recipe.findings(), "3:5 EX008 `old.model.num_layers`");
  ASSERT_EQ(recipe.record.further_runs.size(), 1u);
  EXPECT_EQ(recipe.record.further_runs[0].name, "old");
}

TEST(BadInput, BytesThatAreNoTextAreNamed) {
  EXPECT_EQ(ReadText(ConfigFormat::bridge_yaml, "checkpoint:\n  save: caf\xE9\n").findings(),
            "2:12 SY007 `\xE9`");
  EXPECT_EQ(ReadText(ConfigFormat::functional_test, "MODEL_ARGS:\n  --save: \xC3\n").findings(),
            "2:11 SY007 `\xC3`");
  EXPECT_EQ(
      ReadText(ConfigFormat::bridge_yaml, "checkpoint:\n  save: caf\xC3\xA9\n").value("checkpoint.save"),
      "\"caf\xC3\xA9\"");
}

TEST(BadInput, SectionsThatAreNoTablesAreRefused) {
  const ReadText yaml(ConfigFormat::bridge_yaml, "model: 5\ntrain: [1]\nnothing: 3\nddp:\n");
  EXPECT_EQ(yaml.findings(), "1:8 EX002 `5`; 2:8 EX002 `[1]`; 3:1 EX001 `nothing`");
  EXPECT_EQ(yaml.record.refused.size(), 2u);
  const ReadText hydra(ConfigFormat::hydra, "model=5\ntrain={train_iters: 3, no_key: 1}\n");
  EXPECT_EQ(hydra.findings(), "1:7 EX002 `5`; 2:24 EX001 `no_key`");
  EXPECT_EQ(hydra.value("train.train_iters"), "3");
}

TEST(BadInput, RefusedArgumentsLeaveTheirKeysOpen) {
  const ReadText yaml(ConfigFormat::functional_test,
                      "MODEL_ARGS:\n  --num-layers: x\n  --bf16: null\n  --fp16: false\n  --hidden-size:\n"
                      "  --swiglu:\n");
  EXPECT_EQ(yaml.findings(),
            "2:17 EX002 `x`; 3:11 EX002 `null`; 4:11 EX002 `false`; 5:3 EX003 `--hidden-size`");
  for (const char* const key : {"model.num_layers", "model.bf16", "model.fp16", "model.hidden_size"})
    EXPECT_EQ(yaml.value(key), "\"?\"") << key;
  EXPECT_EQ(yaml.value("model.gated_linear_unit"), "true");  // an empty value is the bare argument
  EXPECT_EQ(yaml.value("ddp.check_for_nan_in_grad"), "\"?\"");
  ASSERT_EQ(yaml.record.refused.size(), 4u);
  EXPECT_EQ(yaml.record.refused[0].name + ": " + yaml.record.refused[0].why,
            "--num-layers: `--num-layers` takes an integer, not `x`");
}

TEST(BadInput, WhatHydraFillsInIsOpen) {
  const ReadText overrides(ConfigFormat::hydra,
                           "model.num_layers=${oc.env:N,4}\nmodel.hidden_size=64\n~model.hidden_size=64\n"
                           "checkpoint.save=\"a/${b}\"\n");
  EXPECT_EQ(overrides.findings(), "1:18 EX004 `${oc.env:N,4}`; 4:17 EX004 `\"a/${b}\"`");
  EXPECT_EQ(overrides.value("model.num_layers") + overrides.value("checkpoint.save"), "\"?\"\"?\"");
  EXPECT_EQ(overrides.value("model.hidden_size"), "absent");
}

TEST(BadInput, ObjectsOfOtherPackagesAreNotKnown) {
  const ReadText yaml(
      ConfigFormat::bridge_yaml,
      "_target_: megatron.bridge.training.config.ConfigContainer\nmodel:\n  attention_backend:\n"
      "    _target_: mine.AttnBackend\n    _args_: [1]\n  activation_func:\n"
      "    _target_: mine.gelu\n    _call_: false\n");
  EXPECT_EQ(yaml.value("model.attention_backend") + yaml.value("model.activation_func"), "\"?\"\"?\"");
  // Of a class that is not Bridge's own only what is stated is known, unless the file states everything.
  const std::string model = "model:\n  _target_: mine.Provider\n  num_layers: 2\n";
  EXPECT_EQ(ReadText(ConfigFormat::bridge_yaml, model).record.open_sections.size(), 1u);
  EXPECT_EQ(ReadText(ConfigFormat::bridge_yaml, "_target_: a.ConfigContainer\n" + model)
                .record.open_sections.size(),
            0u);
}

TEST(BadInput, JsonNumbersAndEscapesOfNoMeaning) {
  const auto message = [](const char* text) {
    const ReadText read(ConfigFormat::hf_config, text);
    return read.sink.diagnostics().empty() ? "" : read.sink.diagnostics()[0].message;
  };
  EXPECT_EQ(message("{\"model_type\": \"llama\", \"rope_theta\": 1e400}"), "this number is out of range");
  EXPECT_EQ(message("{\"model_type\": \"\\ud800\"}"), "half a pair of surrogates stands for no character");
  EXPECT_EQ(message("{\"model_type\": \"\\udc00x\"}"), "half a pair of surrogates stands for no character");
  EXPECT_EQ(message("{\"model_type\": \"\\ux\"}"), "JSON has no such escape");
}

TEST(BadInput, JsonIsToldByItsName) {
  EXPECT_EQ(detect_format("config.json", "[1, 2]\n"), ConfigFormat::hf_config);
  EXPECT_EQ(ReadText(ConfigFormat::hf_config, "[1, 2]\n").findings(), "1:1 EX005 `[`");
}

}  // namespace
}  // namespace capstan
