// TOML -> each format -> TOML gives the same effective config: for every recipe, and for random configs that
// the rules accept. CAPSTAN_ROUND_TRIPS=1000 makes more of the latter.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "compiler/config/bind.h"
#include "compiler/config/exchange/effective.h"
#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/read_config.h"
#include "compiler/config/exchange/write_config.h"
#include "compiler/config/override_layer.h"
#include "compiler/facts/derive.h"
#include "compiler/facts/stack_choice.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/ruleset/resolve.h"
#include "grammar/environment/env_file.h"
#include "tests/support/random_config.h"

namespace capstan {
namespace {

const std::pair<ExportFormat, ConfigFormat> kFormats[] = {
    {ExportFormat::toml, ConfigFormat::toml},
    {ExportFormat::bridge_yaml, ConfigFormat::bridge_yaml},
    {ExportFormat::python, ConfigFormat::python},
    {ExportFormat::hydra, ConfigFormat::hydra},
    {ExportFormat::megatron_args, ConfigFormat::megatron_args}};

const SchemaView& view_of_stack(const std::string& stack) {
  static std::map<std::string, std::unique_ptr<SchemaView>> views;
  std::unique_ptr<SchemaView>& view = views[stack];
  if (!view) view = std::make_unique<SchemaView>(builtin_schema(), *builtin_schema().find_stack(stack));
  return *view;
}

struct Text {
  SourceMap sources;
  Sink sink;
  ReadRecord record;
  Config config;
  bool good = false;

  Text(const std::string& name, std::string text, ConfigFormat format, const SchemaView& view) {
    const SourceId id = sources.add(name, std::move(text), SourceKind::file);
    const auto layers = read_config(id, format, view, sources, disk_reader(), sink, record);
    good = layers.has_value();
    if (!layers) return;
    config = compose(*layers, sink);
    bind(config, view, sink);
  }
  std::string problems() const {
    std::string out;
    for (const Diagnostic& diagnostic : sink.diagnostics()) {
      if (diagnostic.severity == Severity::error || diagnostic.code.starts_with("EX"))
        out += diagnostic.code + " " + diagnostic.message + "\n";
    }
    return out;
  }
};

std::string words(const EffectiveValue* value) {
  if (value == nullptr) return "absent";
  return value->default_text.empty() ? to_text(value->value) : value->default_text;
}

/// Writes `config`, reads it back, writes that as TOML and reads it again: what differs between the first and
/// the last, apart from what the writer said it left out. Empty if nothing.
std::string trip(const Config& config, const SchemaView& view, ExportFormat to, ConfigFormat from,
                 std::vector<WrittenConfig::LeftOut>& left_out) {
  const WrittenConfig written = write_config(config, view, to);
  left_out = written.left_out;
  std::set<std::string> excused;
  for (const auto& left : written.left_out) excused.insert(left.path);
  Config back;
  if (!written.text.empty()) {
    const Text read("x", written.text, from, view);
    if (!read.good || !read.problems().empty())
      return std::string(export_format_name(to)) + " is not read back: " + read.problems() + written.text;
    const WrittenConfig toml = write_config(read.config, view, ExportFormat::toml);
    for (const auto& left : toml.left_out) {
      if (section_of(left.path) != "target")
        return std::string(export_format_name(to)) + ": TOML cannot hold " + left.path + ": " + left.why;
    }
    const Text again("x.toml", toml.text, ConfigFormat::toml, view);
    if (!again.good || !again.problems().empty())
      return "the TOML is not read back: " + again.problems() + toml.text;
    back = again.config;
  }
  std::string out;
  const auto before = effective_config(config, view), after = effective_config(back, view);
  for (const EffectiveDifference& difference : compare(before, after)) {
    if (excused.contains(difference.path)) continue;
    out += std::string(export_format_name(to)) + ": " + difference.path + ": " + words(difference.before) +
           " -> " + words(difference.after) + "\n";
  }
  return out.empty() ? "" : out + written.text;
}

/// What the config gives a key: by itself, by `mixed_precision`, which Bridge copies over it, or under an
/// earlier name. Null when it does not.
const Value* value_of(const std::string& path, const Config& config, const SchemaView& view) {
  const std::string section(section_of(path));
  if (section == "model" || section == "optimizer" || section == "ddp") {
    const Setting* copied = config.find("mixed_precision" + path.substr(section.size()));
    if (copied != nullptr && !copied->value.is_none()) return &copied->value;
  }
  // An earlier name overrules a present one that is not set or says its default (effective_config).
  const auto says_something = [&](const Setting* setting) {
    const KeySpec* const spec = setting == nullptr ? nullptr : view.find(setting->path).spec;
    return setting != nullptr &&
           (spec == nullptr || !spec->has_default || !(setting->value == spec->default_value));
  };
  if (!says_something(config.find(path))) {
    for (const KeyInfo& key : view.schema().keys()) {
      if (key.renamed_to != path) continue;
      const Setting* setting = config.find(key.path);
      if (says_something(setting)) return &setting->value;
    }
  }
  const Setting* setting = config.find(path);
  return setting == nullptr ? nullptr : &setting->value;
}

/// Why an argument list of the release cannot say a setting; empty when it should be able to.
std::string excuse(const WrittenConfig::LeftOut& left, const Config& config, const SchemaView& view) {
  const std::string section(section_of(left.path));
  if (section == "target" || section == "cluster" || section == "execute") return "of Capstan alone";
  if (section == kEnvironmentSection) return "an environment variable";
  if (left.why.starts_with("`mixed_precision.")) return "overruled by `mixed_precision`";
  if (left.why.find("but Megatron-LM sets it to") != std::string::npos) return "overruled by Megatron-LM";
  const Value* value = value_of(left.path, config, view);
  if ((value != nullptr && value->is_none()) || left.why.ends_with("sets it to `none`"))
    return "none, which no argument says";
  // `--bf16` and `--fp16` each set the type of the parameters: a config of both can say one.
  const Value* const bf16 = value_of("optimizer.bf16", config, view);
  if (left.path == "optimizer.fp16" && bf16 != nullptr && *bf16 == Value(true))
    return "at odds with all arguments of the key";
  const Version& release = *view.stack().version_of("megatron-lm");
  bool has_argument = false;
  for (const Flag& flag : builtin_flag_table().flags) {
    if ((flag.since && release < *flag.since) || (flag.until && release >= *flag.until)) continue;
    std::map<std::string, const Value*> sets;
    for (const std::string& key : flag.keys) sets[key] = value;
    for (const auto& [key, set] : flag.sets) sets[key] = &set;
    if (!sets.contains(left.path)) continue;
    has_argument = true;
    // A word where the argument takes a list comes back as a list.
    if (flag.is_list && !flag.single && value != nullptr && value->kind() != Value::Kind::list) continue;
    // A word that the argument's parser refuses.
    const std::vector<std::string>* const words = words_of(flag, release);
    if (words != nullptr && value != nullptr && value->kind() == Value::Kind::string &&
        std::find(words->begin(), words->end(), value->string()) == words->end())
      continue;
    // A fraction where the argument takes whole numbers.
    if (flag.takes == FlagValue::integer && value != nullptr && value->kind() == Value::Kind::floating &&
        value->floating() != std::floor(value->floating()))
      continue;
    const bool fits = std::all_of(sets.begin(), sets.end(), [&](const auto& set) {
      const Value* wanted = value_of(set.first, config, view);
      return wanted == nullptr || function_name(*wanted) == function_name(*set.second);
    });
    if (fits) return {};
  }
  return has_argument ? "at odds with all arguments of the key" : "without an argument in the release";
}

/// The stack of Megatron-LM with the same core, for recipes of Bridge.
std::string frontend_twin(const std::string& stack) {
  static const std::map<std::string, std::string> twins = {{"bridge-0.2", "megatron-lm-0.16"},
                                                           {"bridge-0.3", "megatron-lm-0.16"},
                                                           {"bridge-0.4", "megatron-lm-0.17"},
                                                           {"bridge-0.5", "megatron-lm-0.18"},
                                                           {"bridge-0.6", "megatron-lm-0.19"}};
  const auto twin = twins.find(stack);
  return twin == twins.end() ? stack : twin->second;
}

/// What Bridge leaves at its default must be said to Megatron-LM where that has another one.
TEST(RoundTrip, DefaultsThatDifferBetweenTheFrontEndsAreSaid) {
  std::size_t differing = 0;
  for (const char* const stack : {"bridge-0.3", "bridge-0.4", "bridge-0.5", "bridge-0.6"}) {
    const SchemaView &ours = view_of_stack(stack), &theirs = view_of_stack(frontend_twin(stack));
    std::vector<Config> configs(1);
    const Config empty;
    const auto our_values = effective_config(empty, ours), their_values = effective_config(empty, theirs);
    for (const EffectiveDifference& difference : compare(our_values, their_values)) {
      const std::string_view section = difference.before == nullptr ? "" : section_of(difference.path);
      if (difference.before == nullptr || difference.after == nullptr || section == "mixed_precision")
        continue;
      ++differing;
      // Also with the other front-end's default written down, which must stay what it is.
      if (!difference.after->default_text.empty() || difference.after->value.is_none()) continue;
      Config config;
      config.settings[difference.path] = {difference.path, difference.after->value, {}, {}, {}, {}};
      configs.push_back(std::move(config));
    }
    for (const Config& config : configs) {
      const WrittenConfig written = write_config(config, ours, ExportFormat::megatron_args);
      std::set<std::string> excused;
      for (const auto& left : written.left_out) excused.insert(left.path);
      const Text read("x", written.text, ConfigFormat::megatron_args, theirs);
      ASSERT_EQ(read.problems(), "") << written.text;
      const auto before = effective_config(config, ours), after = effective_config(read.config, theirs);
      for (const EffectiveDifference& difference : compare(before, after)) {
        if (difference.before == nullptr || difference.after == nullptr) continue;
        if (section_of(difference.path) == "mixed_precision") continue;
        EXPECT_TRUE(excused.contains(difference.path))
            << stack << ": " << difference.path << ": " << words(difference.before) << " -> "
            << words(difference.after) << "\n"
            << written.text;
      }
    }
  }
  EXPECT_GT(differing, 40u);  // each release has some
}

TEST(RoundTrip, EveryRecipeSurvivesEveryFormat) {
  std::size_t recipes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CAPSTAN_SOURCE_DIR "/recipes")) {
    if (entry.path().extension() != ".toml" || entry.path().filename() == "capstan.toml") continue;
    ++recipes;
    const std::string recipe = entry.path().string();
    SourceMap sources;
    Sink sink;
    ReadFailure failure;
    const SourceId id =
        sources.add(entry.path().string(), *read_text_file(entry.path().string(), failure), SourceKind::file);
    const auto layers = load_layers(id, sources, disk_reader(), sink);
    ASSERT_TRUE(layers) << entry.path();
    Config config = compose(*layers, sink);
    const auto stack = choose_stack(config, builtin_schema(), "", sink);
    ASSERT_TRUE(stack) << entry.path();
    bind(config, view_of_stack(stack->stack.name), sink);
    ASSERT_FALSE(sink.has_errors()) << entry.path();
    for (const auto& [to, from] : kFormats) {
      const bool arguments = to == ExportFormat::megatron_args;
      const SchemaView& view =
          view_of_stack(arguments ? frontend_twin(stack->stack.name) : stack->stack.name);
      std::vector<WrittenConfig::LeftOut> left;
      EXPECT_EQ(trip(config, view, to, from, left), "") << entry.path();
      for (const WrittenConfig::LeftOut& out : left) {
        const std::string section(section_of(out.path));
        // Capstan's own sections are no part of a framework's config.
        if (section == "execute" || section == "cluster" || section == "target") continue;
        EXPECT_TRUE(arguments &&
                    (out.kind != WrittenConfig::LeftOut::Kind::lost || !excuse(out, config, view).empty()))
            << recipe << ": " << export_format_name(to) << " leaves out " << out.path << ": " << out.why;
      }
    }
  }
  EXPECT_GE(recipes, 5u);
}

/// The config without what the rules refuse; nothing when dropping keys does not help.
std::optional<Config> legal(Config config, const RuleBook& book) {
  for (int round = 0; round < 60; ++round) {
    const Facts facts = derive_facts(config, book.schema, book.rules.set->names);
    const Evaluation evaluation = evaluate(book.rules, facts);
    const auto refused = std::find_if(evaluation.violations.begin(), evaluation.violations.end(),
                                      [&](const Violation& violation) {
                                        const RuleItem& item = book.rules.set->items[violation.item];
                                        return !violation.undecided && item.kind == RuleItem::Kind::check &&
                                               item.severity == Severity::error;
                                      });
    if (refused == evaluation.violations.end()) return config;
    bool dropped = false;
    const RuleItem& item = book.rules.set->items[refused->item];
    for (const std::vector<FactId>* facts_of_rule : {&item.blame, &item.reads}) {
      for (const FactId fact : *facts_of_rule) {
        if (!dropped) dropped = config.settings.erase(book.rules.set->names.name(fact)) > 0;
      }
    }
    if (!dropped) return std::nullopt;
  }
  return std::nullopt;
}

std::size_t wanted_configs() {
  const char* text = std::getenv("CAPSTAN_ROUND_TRIPS");
  return text == nullptr ? 60 : static_cast<std::size_t>(std::max(1L, std::strtol(text, nullptr, 10)));
}

/// The variables of a config as a file of exports, read back.
std::string environment_trip(const Config& config, const SchemaView& view) {
  Config variables;
  for (const auto& [path, setting] : config.settings) {
    if (section_of(path) == kEnvironmentSection) variables.settings[path] = setting;
  }
  const WrittenConfig written = write_config(config, view, ExportFormat::env);
  SourceMap sources;
  Sink sink;
  const SourceId id = sources.add("job.env", written.text, SourceKind::file);
  const auto layer = read_environment_file_layer(id, sources, sink);
  if (!layer) return "not read back: " + written.text;
  const Config back = compose({*layer}, sink);
  const auto before = effective_config(variables, view), after = effective_config(back, view);
  return compare(before, after).empty() ? "" : "other variables: " + written.text;
}

TEST(RoundTrip, LegalConfigsSurviveEveryFormat) {
  Sink sink;
  const RuleSet rules = resolve(builtin_rule_files(), builtin_phases(), builtin_schema(), sink);
  unsigned seed = 40;
  for (const char* const stack : {"bridge-0.4", "megatron-lm-0.19", "bridge-0.6", "megatron-lm-0.17"}) {
    const bool arguments = std::string(stack).starts_with("megatron-lm");
    const SchemaView& view = view_of_stack(stack);
    const RuleBook book(view, select(rules, *builtin_schema().find_stack(stack)));
    RandomConfigs random(book, seed++);
    std::size_t made = 0, tried = 0, settings = 0, added = 0, respelled = 0;
    std::map<std::string, std::size_t> lost;
    while (made < wanted_configs()) {
      ASSERT_LT(++tried, 20 * wanted_configs() + 100);
      Config drawn = random.next();
      Sink problems;
      bind(drawn, view, problems);
      for (const std::string& path : drawn.broken) drawn.settings.erase(path);
      drawn.broken.clear();
      auto config = legal(std::move(drawn), book);
      if (!config) continue;
      // The trip begins with TOML, which cannot say none for every key.
      for (const auto& left : write_config(*config, view, ExportFormat::toml).left_out)
        config->settings.erase(left.path);
      config = legal(std::move(*config), book);
      if (!config || config->settings.empty()) continue;
      ++made;
      settings += config->settings.size();
      EXPECT_EQ(environment_trip(*config, view), "");
      for (const auto& [to, from] : kFormats) {
        if ((to == ExportFormat::megatron_args) != arguments) continue;
        std::vector<WrittenConfig::LeftOut> left;
        ASSERT_EQ(trip(*config, view, to, from, left), "")
            << "config " << tried << ":\n"
            << write_config(*config, view, ExportFormat::toml).text;
        for (const WrittenConfig::LeftOut& entry : left) {
          if (entry.kind != WrittenConfig::LeftOut::Kind::lost) {
            ++(entry.kind == WrittenConfig::LeftOut::Kind::added ? added : respelled);
            continue;
          }
          const std::string why = excuse(entry, *config, view);
          EXPECT_TRUE(!why.empty() && (arguments || why == "of Capstan alone"))
              << export_format_name(to) << " loses " << entry.path << ": " << entry.why << "\n"
              << write_config(*config, view, ExportFormat::toml).text;
          ++lost[why];
        }
      }
    }
    std::printf("%s: %zu legal configs of %zu drawn with %zu settings; not said:", stack, made, tried,
                settings);
    for (const auto& [why, count] : lost) std::printf(" %zu %s,", count, why.c_str());
    std::printf(" respelled: %zu, set in addition: %zu\n", respelled, added);
  }
}

TEST(RoundTrip, EnvironmentFilesHoldTheEnvironment) {
  const SchemaView& view = view_of_stack("bridge-0.4");
  Config config;
  for (const auto& [name, value] :
       std::map<std::string, std::string>{{"NCCL_ALGO", "Ring"},
                                          {"PYTORCH_CUDA_ALLOC_CONF", "a:1,b:[2]"},
                                          {"X", "it's $HOME \"quoted\" # no comment"},
                                          {"EMPTY", ""}}) {
    Setting setting;
    setting.path = "env." + name;
    setting.value = Value(value);
    config.settings[setting.path] = setting;
  }
  const WrittenConfig written = write_config(config, view, ExportFormat::env);
  EXPECT_TRUE(written.left_out.empty());
  SourceMap sources;
  Sink sink;
  const SourceId id = sources.add("job.env", written.text, SourceKind::file);
  const auto layer = read_environment_file_layer(id, sources, sink);
  ASSERT_TRUE(layer) << written.text;
  const Config back = compose({*layer}, sink);
  EXPECT_EQ(effective_digest(effective_config(config, view)), effective_digest(effective_config(back, view)))
      << written.text;
}

}  // namespace
}  // namespace capstan
