// Megatron-LM arguments -> layers, by rules/flags.toml.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>

#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"
#include "compiler/config/exchange/say_argument.h"
#include "compiler/config/override_layer.h"
#include "compiler/config/pipeline_layout.h"
#include "grammar/arguments/launcher_words.h"
#include "grammar/arguments/list_expression.h"

namespace capstan {
namespace {

std::optional<std::int64_t> to_integer(std::string_view text) {
  std::int64_t value = 0;
  std::string digits(text.starts_with('+') ? text.substr(1) : text);
  digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());  // Python's int() takes them
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<double> to_float(std::string_view text) {
  double value = 0;
  std::string digits(text.starts_with('+') ? text.substr(1) : text);
  if (digits.starts_with('.')) digits.insert(0, "0");
  if (digits.starts_with("-.")) digits.insert(1, "0");
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size() || digits.empty()) return std::nullopt;
  return value;
}

/// A word as the argument's type reads it; nothing if it cannot.
std::optional<Value> typed(FlagValue kind, const std::string& text) {
  switch (kind) {
    case FlagValue::integer:
      if (const auto value = to_integer(text)) return Value(*value);
      return std::nullopt;
    case FlagValue::floating:
      if (const auto value = to_float(text)) return Value(*value);
      return std::nullopt;
    case FlagValue::boolean:
      if (text == "true" || text == "True" || text == "1") return Value(true);
      if (text == "false" || text == "False" || text == "0") return Value(false);
      return std::nullopt;
    case FlagValue::any:
      if (const auto value = to_integer(text)) return Value(*value);
      if (const auto value = to_float(text)) return Value(*value);
      return Value(text);
    case FlagValue::string:
    case FlagValue::none:
      return Value(text);
  }
  return std::nullopt;
}

const char* wanted(FlagValue kind) {
  switch (kind) {
    case FlagValue::integer:
      return "an integer";
    case FlagValue::floating:
      return "a number";
    case FlagValue::boolean:
      return "`true` or `false`";
    default:
      return "a value";
  }
}

class Mapper {
 public:
  Mapper(const ArgumentList& list, const ReadContext& context)
      : list_(list),
        context_(context),
        given_(OriginKind::file, context.file),
        implied_(OriginKind::imported, context.file) {}

  std::vector<Layer> run() {
    for (const ArgumentValue& word : list_.absent) report_default(word);
    for (const ArgumentValue& word : list_.loose) take_loose(word);
    for (const Argument& argument : list_.arguments) take(argument);
    for (const Winner& winner : winners_) {
      if (winner.doubtful) open_keys(winner.flag, winner.span, winner.span);
    }
    for (const Winner& winner : winners_) {
      if (!winner.doubtful) set_all(winner.flag, winner.span);
    }
    take_launcher();
    for (const EnvironmentVariable& variable : list_.variables) {
      given_.set("env." + variable.name, variable.name_span, Value(variable.value), variable.value_span);
    }
    for (const EnvironmentVariable& variable : list_.open_variables) {
      if (!is_job_variable(variable.name)) continue;
      report_not_literal(context_, variable.name, "it is set under a condition, or needs a shell to be known",
                         variable.name_span);
      given_.set_unknown("env." + variable.name, variable.name_span, variable.value_span);
    }
    add_virtual_stages();
    add_layout_stages();
    add_implied();
    std::vector<Layer> layers;
    layers.push_back(implied_.take());
    layers.push_back(given_.take());
    return layers;
  }

 private:
  void set_all(const Flag& flag, Span span) {
    for (const auto& [key, value] : chosen(flag.sets)) given_.set(key, span, value, span);
  }

  void take(const Argument& given) {
    if (given.flag.find_first_of("$`{") != std::string::npos) {  // `--$NAME`, `--{a,b}`
      report_further({given.flag, given.flag_span, false});
      return;
    }
    ++context_.record.total;
    const Flag* flag = builtin_flag_table().find(given.flag);
    Flag of_release;
    if (const Version* release = megatron_release();
        flag != nullptr && flag->list_since && release != nullptr) {
      of_release = as_of(*flag, *release);
      flag = &of_release;
    }
    const Argument argument = flag == nullptr ? given : without_further(given, *flag);
    if (flag == nullptr) {
      report_unknown(context_, argument.flag,
                     fmt::format("`{}` is no argument that any known release has", argument.flag),
                     argument.flag_span);
      return;
    }
    (argument.conditional ? doubtful_ : present_).insert(flag->name);
    check_release(*flag, argument.flag_span);
    if (!flag->irrelevant.empty()) {
      context_.record.irrelevant.push_back({flag->name, flag->irrelevant, argument.flag_span});
      return;
    }
    ++context_.record.mapped;
    if (argument.conditional) {
      report_not_literal(context_, flag->name, "it is added under a condition", argument.flag_span);
      open_keys(*flag, argument.flag_span, argument.flag_span);
      if (flag->wins) winners_.push_back(Winner{*flag, argument.flag_span, true});
      return;
    }
    Span whole = argument.flag_span;
    if (!argument.values.empty() && argument.values.back().span.source == whole.source &&
        argument.values.back().span.end > whole.end && argument.values.front().span.begin >= whole.end) {
      whole.end = argument.values.back().span.end;
    }
    if (flag->takes == FlagValue::none) {
      if (!argument.values.empty()) {
        for (const ArgumentValue& value : argument.values)
          refuse(*flag, argument, "EX002",
                 fmt::format("`{}` is a switch and takes no value, found `{}`", flag->name, value.text),
                 value.span);
        return;
      }
      set_all(*flag, argument.flag_span);
      if (flag->wins) winners_.push_back(Winner{*flag, argument.flag_span, false});
      return;
    }
    if (argument.values.empty()) {
      // `nargs="*"` lists may be empty; everything else needs a value.
      const bool may_be_empty = flag->is_list && !flag->filled;
      if (flag->takes == FlagValue::boolean) {  // `key: true` of a functional test
        for (const std::string& key : chosen(flag->keys))
          given_.set(key, argument.flag_span, Value(true), argument.flag_span);
        return;
      }
      if (!may_be_empty) {
        refuse(*flag, argument, "EX003",
               fmt::format("`{}` needs {} behind it", flag->name, wanted(flag->takes)), argument.flag_span);
        return;
      }
    }
    if (!flag->is_list && argument.values.size() > 1) {
      for (auto further = argument.values.begin() + 1; further != argument.values.end(); ++further) {
        refuse(*flag, argument, "EX002",
               fmt::format("`{}` takes one value, found another one: `{}`", flag->name, further->text),
               further->span);
      }
      return;
    }
    for (const ArgumentValue& value : argument.values) {
      if (value.literal) continue;
      report_not_literal(context_, flag->name, fmt::format("`{}` needs a shell to be known", value.text),
                         value.span);
      open_keys(*flag, argument.flag_span, value.span);
      return;
    }
    for (const ArgumentValue& value : argument.values) report_default(value);
    report_repetition(*flag, argument);
    SyntaxNode node;
    if (!read_value(*flag, argument, node)) return;
    for (const std::string& key : chosen(flag->keys)) given_.set(key, argument.flag_span, node);
  }

  /// What a refused argument was meant to set is not known, so that nothing is concluded from its absence.
  void refuse(const Flag& flag, const Argument& argument, const char* code, std::string message, Span place) {
    report_refused(context_, code, flag.name, std::move(message), place);
    present_.erase(flag.name);
    doubtful_.insert(flag.name);
    open_keys(flag, argument.flag_span, place);
  }

  void open_keys(const Flag& flag, Span key, Span place) {
    if (!flag.keys.empty()) {
      for (const std::string& path : chosen(flag.keys)) given_.set_unknown(path, key, place);
    }
    for (const auto& [path, value] : chosen(flag.sets)) given_.set_unknown(path, key, place);
  }

  /// Takes away what a shell may turn into further arguments: `--swiglu $EXTRA`.
  Argument without_further(const Argument& given, const Flag& flag) {
    Argument argument = given;
    if (flag.is_list) {  // the first word is the list's own; a later one may end it
      const auto may_end = [&](const ArgumentValue& value) {
        if (value.literal || !value.several || &value == argument.values.data()) return false;
        // `0.3 $A 0.7 $B`: a blend names a path behind each weight.
        const ArgumentValue& before = *(&value - 1);
        return value.text.find('@') != std::string::npos || !before.literal || !to_float(before.text);
      };
      const auto found = std::find_if(argument.values.begin(), argument.values.end(), may_end);
      std::for_each(found, argument.values.end(), [&](const ArgumentValue& value) {
        if (may_end(value)) report_further(value);
      });
      // Behind a list in quotes come arguments; the words of a variable may belong to this one.
      if (found != argument.values.end() && found->text.find('@') != std::string::npos)
        argument.values.erase(found, argument.values.end());
      return argument;
    }
    const std::size_t takes = flag.takes == FlagValue::none ? 0 : 1;
    while (argument.values.size() > takes) {
      const ArgumentValue& last = argument.values.back();
      if (!last.literal)
        report_further(last);
      else if (last.text.starts_with('@'))
        report_arguments_file(last);
      else
        break;
      argument.values.pop_back();
    }
    return argument;
  }

  /// What the file holds is meant to count, so that nothing is concluded from absent arguments.
  void report_arguments_file(const ArgumentValue& word) {
    report_unknown(context_, word.text,
                   fmt::format("Megatron-LM reads no files of arguments, so `{}` is no argument", word.text),
                   word.span);
    further_.insert({word.span.begin, word.text});
    context_.record.unset_is_open = true;
  }

  /// Any argument may come with the word: what the text does not set need not hold its default.
  void report_further(const ArgumentValue& word) {
    if (!further_.insert({word.span.begin, word.text}).second) return;
    context_.sink.problem(
        "EX004",
        fmt::format("the arguments in `{}` are not known here; keys that no other argument sets are open",
                    word.text),
        word.span);
    context_.record.not_literal.push_back({word.text, "further arguments", word.span});
    context_.record.unset_is_open = true;
  }

  void take_loose(const ArgumentValue& word) {
    if (!word.literal) return report_further(word);
    ++context_.record.total;
    if (word.text.starts_with('@')) return report_arguments_file(word);
    report_unknown(context_, word.text,
                   fmt::format("`{}` stands before the first argument, where none takes it", word.text),
                   word.span);
  }

  /// Of equal arguments the last one holds; one that says something else is seldom meant to stand there.
  void report_repetition(const Flag& flag, const Argument& argument) {
    std::string words;
    for (const ArgumentValue& value : argument.values) words += (words.empty() ? "" : " ") + value.text;
    const auto [earlier, is_new] = said_.emplace(flag.name, words);
    if (is_new || earlier->second == words) return;
    context_.sink.problem("EX007",
                          fmt::format("`{}` stands twice: `{}` before, `{}` here; the last one holds",
                                      flag.name, earlier->second, words),
                          argument.flag_span);
    earlier->second = words;
  }

  void report_default(const ArgumentValue& value) {
    if (value.default_of.empty() || !defaults_.emplace(value.span.begin, value.default_of).second) return;
    const std::string taken = value.text.empty() ? "empty" : "`" + value.text + "`";
    const bool is_positional = value.default_of.find_first_not_of("0123456789") == std::string::npos;
    context_.sink.problem(
        "EX009",
        is_positional
            ? fmt::format("`${}` is taken as {}, the default stated here; the script's call may give another",
                          value.default_of, taken)
            : fmt::format(
                  "`{}` is taken as {}, the default stated here; the environment may hold another value",
                  value.default_of, taken),
        value.span);
  }

  /// Of the stack; null where it names none.
  const Version* megatron_release() const {
    const Version* version = context_.view.stack().version_of("megatron-lm");
    return version != nullptr ? version : context_.view.stack().version_of("megatron-core");
  }

  const std::vector<std::string>* release_words(const Flag& flag) const {
    const Version* release = megatron_release();
    return release == nullptr || flag.choices.empty() ? nullptr : words_of(flag, *release);
  }

  void check_release(const Flag& flag, Span place) {
    // A key that the release does not have is reported where keys are checked.
    const auto is_known = [&](const std::string& key) { return knows(context_.view, key); };
    const bool known =
        std::any_of(flag.keys.begin(), flag.keys.end(), is_known) ||
        std::any_of(flag.sets.begin(), flag.sets.end(), [&](const auto& set) { return is_known(set.first); });
    if (!known && flag.irrelevant.empty()) return;
    const Version* version = megatron_release();
    if (version == nullptr) return;
    const std::string& stack = context_.view.stack().name;
    if (flag.since && *version < *flag.since) {
      report_unknown(context_, flag.name,
                     fmt::format("`{}` is no argument of {}; it came with Megatron-LM {}", flag.name, stack,
                                 to_text(*flag.since)),
                     place);
    } else if (flag.until && *version >= *flag.until) {
      report_unknown(context_, flag.name,
                     fmt::format("`{}` is no argument of {} any more; Megatron-LM {} took it away", flag.name,
                                 stack, to_text(*flag.until)),
                     place);
    }
  }

  bool read_value(const Flag& flag, const Argument& argument, SyntaxNode& node) {
    std::vector<SyntaxNode> items;
    for (const ArgumentValue& value : argument.values) {
      const auto converted = typed(flag.takes, value.text);
      if (!converted) {
        refuse(flag, argument, "EX002",
               fmt::format("`{}` takes {}, not `{}`", flag.name, wanted(flag.takes), value.text), value.span);
        return false;
      }
      if (const auto* words = release_words(flag);
          words != nullptr && std::find(words->begin(), words->end(), value.text) == words->end()) {
        refuse(flag, argument, "EX002",
               fmt::format("`{}` takes `{}` in {}, not `{}`", flag.name, fmt::join(*words, "`, `"),
                           context_.view.stack().name, value.text),
               value.span);
        return false;
      }
      SyntaxNode item;
      item.scalar = *converted;
      item.span = value.span;
      if (takes_pattern(flag) && value.text.find('[') != std::string::npos) take_numbers(value.text, item);
      if (takes_tuple(flag)) take_numbers("[" + without_parentheses(value.text) + "]", item);
      items.push_back(std::move(item));
    }
    if (!flag.is_list || (flag.single && items.size() == 1)) {
      node = std::move(items.front());
      return true;
    }
    node.kind = SyntaxNode::Kind::list;
    node.span = argument.flag_span;
    if (!items.empty()) {
      node.span = items.front().span;
      if (items.back().span.source == node.span.source && items.back().span.end > node.span.end)
        node.span.end = items.back().span.end;
    }
    node.items = std::move(items);
    return true;
  }

  /// `(128,0)`, `128,0`
  static std::string without_parentheses(std::string_view text) {
    const std::size_t begin = std::min(text.find_first_not_of("()"), text.size());
    return std::string(text.substr(begin, text.find_last_not_of("()") + 1 - begin));
  }

  /// `([0]*3+[1]*58)` is the list that Megatron-LM makes of it; it allows no blanks.
  static void take_numbers(const std::string& text, SyntaxNode& node) {
    if (text.find(' ') != std::string::npos) return;
    const auto list = evaluate_list_expression(text);
    if (!list) return;
    node.kind = SyntaxNode::Kind::list;
    node.scalar = Value();
    for (const std::int64_t layer : *list) {
      SyntaxNode item;
      item.scalar = Value(layer);
      item.span = node.span;
      node.items.push_back(std::move(item));
    }
  }

  /// Of several keys those that the stack has; the first if it has none, so that the release gap is reported.
  std::vector<std::string> chosen(const std::vector<std::string>& keys) const {
    std::vector<std::string> out;
    for (const std::string& key : keys) {
      if (knows(context_.view, key)) out.push_back(key);
    }
    if (out.empty()) out.push_back(keys.front());
    return out;
  }
  std::vector<std::pair<std::string, Value>> chosen(
      const std::vector<std::pair<std::string, Value>>& sets) const {
    std::vector<std::pair<std::string, Value>> out;
    for (const auto& entry : sets) {
      if (knows(context_.view, entry.first)) out.push_back(entry);
    }
    if (out.empty() && !sets.empty()) out.push_back(sets.front());
    return out;
  }

  /// What starts the program tells the shape of the cluster.
  void take_launcher() {
    const LauncherShape shape = launcher_shape(list_.launcher);
    const auto take = [&](const char* key, const std::optional<LauncherCount>& count) {
      if (!count) return;
      // Slurm always says its own; what `#SBATCH` asks for is better known than the default.
      if (count->value.default_of.starts_with("SLURM_")) return;
      report_default(count->value);
      given_.set(key, count->key, Value(count->count), count->value.span);
    };
    take("cluster.nodes", shape.nodes);
    take("cluster.gpus_per_node", shape.ranks_per_node);
    take("cluster.world_size", shape.ranks);
  }

  const ArgumentValue* value_of(std::string_view flag) const {
    const ArgumentValue* found = nullptr;
    for (const Argument& argument : list_.arguments) {
      if (argument.flag == flag && argument.values.size() == 1 && argument.values[0].literal)
        found = &argument.values[0];
    }
    return found;
  }

  /// `--pipeline-model-parallel-layout`: stages / pipeline ranks (validate_args).
  void add_layout_stages() {
    const ArgumentValue* layout = value_of("--pipeline-model-parallel-layout");
    const ArgumentValue* ranks_value = value_of("--pipeline-model-parallel-size");
    if (!further_.empty() && ranks_value == nullptr) return;
    if (layout == nullptr || given_.has("model.virtual_pipeline_model_parallel_size")) return;
    const auto stages = read_pipeline_layout(Value(layout->text));
    const auto ranks =
        ranks_value == nullptr ? std::optional<std::int64_t>(1) : to_integer(ranks_value->text);
    if (!stages || !ranks || *ranks <= 0) return;
    const auto count = static_cast<std::int64_t>(stages->size());
    if (count % *ranks != 0) return;
    const std::int64_t per_rank = count / *ranks;
    if (per_rank > 1) {
      implied_.set("model.virtual_pipeline_model_parallel_size", layout->span, Value(per_rank), layout->span);
    }
  }

  /// `--num-layers-per-virtual-pipeline-stage n`: layers / pipeline ranks / n virtual stages (validate_args).
  void add_virtual_stages() {
    const ArgumentValue* per_stage = value_of("--num-layers-per-virtual-pipeline-stage");
    if (per_stage == nullptr || given_.has("model.virtual_pipeline_model_parallel_size")) return;
    const auto number = [&](std::string_view flag, std::int64_t absent) -> std::optional<std::int64_t> {
      const ArgumentValue* value = value_of(flag);
      if (value != nullptr) return to_integer(value->text);
      return further_.empty() ? std::optional(absent) : std::nullopt;
    };
    const auto size = to_integer(per_stage->text);
    const auto layers = number("--num-layers", 0), ranks = number("--pipeline-model-parallel-size", 1);
    if (!size || !layers || !ranks || *size <= 0 || *ranks <= 0 || *layers <= 0 || *layers % *ranks != 0)
      return;
    const std::int64_t per_rank = *layers / *ranks;
    if (per_rank % *size != 0) return;
    implied_.set("model.virtual_pipeline_model_parallel_size", per_stage->span, Value(per_rank / *size),
                 per_stage->span);
  }

  void add_implied() {
    const auto is_present = [&](const std::string& flag) { return present_.contains(flag); };
    const auto may_be_present = [&](const std::string& flag) {
      return present_.contains(flag) || doubtful_.contains(flag);
    };
    for (const ImpliedSetting& implied : builtin_flag_table().implied) {
      if (!std::all_of(implied.when.begin(), implied.when.end(), may_be_present)) continue;
      if (std::any_of(implied.unless.begin(), implied.unless.end(), is_present)) continue;
      const bool known = std::all_of(implied.when.begin(), implied.when.end(), is_present) &&
                         std::none_of(implied.unless.begin(), implied.unless.end(), may_be_present) &&
                         (implied.unless.empty() || further_.empty());
      for (const auto& [key, value] : implied.sets) {
        if (!knows(context_.view, key)) continue;
        if (given_.has(key)) {
          if (value.is_none() && known) take_back(key, implied.why);
          continue;
        }
        if (known)
          implied_.set(key, Span{}, value, Span{});
        else
          implied_.set_unknown(key, Span{}, Span{});
      }
    }
    implied_.set("target.frontend", Span{}, Value("megatron-lm"), Span{});
  }

  /// The front-end drops what the argument of the key says.
  void take_back(const std::string& key, const std::string& why) {
    for (const Argument& argument : list_.arguments) {
      const Flag* const flag = builtin_flag_table().find(argument.flag);
      if (flag == nullptr || std::find(flag->keys.begin(), flag->keys.end(), key) == flag->keys.end())
        continue;
      context_.sink.problem("EX001", fmt::format("`{}` has no effect: {}", argument.flag, why),
                            argument.flag_span);
      given_.set(key, argument.flag_span, Value(), argument.flag_span);
    }
  }

  const ArgumentList& list_;
  const ReadContext& context_;
  LayerBuilder given_, implied_;
  struct Winner {
    Flag flag;
    Span span;
    bool doubtful = false;  ///< added under a condition
  };
  std::vector<Winner> winners_;                               ///< set again after all others
  std::set<std::string> present_, doubtful_;                  ///< doubtful: added under a condition
  std::set<std::pair<std::uint32_t, std::string>> further_;   ///< words that may hold any arguments
  std::set<std::pair<std::uint32_t, std::string>> defaults_;  ///< reported ones
  std::map<std::string, std::string> said_;                   ///< values by argument, as written
};

}  // namespace

std::vector<Layer> map_arguments(const ArgumentList& list, const ReadContext& context) {
  return Mapper(list, context).run();
}

}  // namespace capstan
