// Argument lists, shell and batch scripts; functional-test YAML.
#include <fmt/format.h>

#include "compiler/config/exchange/flag_table.h"
#include "compiler/config/exchange/launcher_text.h"
#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"
#include "grammar/arguments/launcher_words.h"
#include "grammar/arguments/megatron_arguments.h"
#include "grammar/environment/sbatch.h"

namespace capstan {
namespace {

constexpr Version kFirstWithQuotes{0, 17, 0, -4, 0};  // the launcher's double quotes around `|` and `(`

/// Text of a YAML scalar as the launcher passes it on.
std::string argument_text(const SyntaxNode& node, const SourceMap& sources) {
  if (node.scalar.kind() == Value::Kind::string) return node.scalar.string();
  // Numbers and booleans as written: 1e-4 must not become 0.0001 on its way.
  const std::string_view written = sources.text(node.span);
  return written.empty() ? to_text(node.scalar) : std::string(written);
}

/// `${X}`: filled in by the test launcher.
bool has_placeholder(std::string_view text) {
  return text.find("${") != std::string_view::npos || text.find("$(") != std::string_view::npos;
}

/// Words of `a b c` with their places (when the text stands in the source as it is).
void add_words(const std::string& text, Span span, std::vector<ArgumentValue>& out) {
  const bool exact = span.end - span.begin == text.size();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = std::min(text.find_first_not_of(" \t", at), text.size());
    const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
    if (end > begin) {
      Span place = span;
      if (exact) {
        place.begin = span.begin + static_cast<std::uint32_t>(begin);
        place.end = span.begin + static_cast<std::uint32_t>(end);
      }
      out.push_back({text.substr(begin, end - begin), place, true});
    }
    at = end;
  }
}

/// `MODEL_ARGS`, or `MODEL_ARGS_2` and so on of a test with several runs.
bool is_run(std::string_view name) {
  constexpr std::string_view kFirst = "MODEL_ARGS";
  if (!name.starts_with(kFirst)) return false;
  name.remove_prefix(kFirst.size());
  return name.empty() || (name.size() > 1 && name[0] == '_' &&
                          name.find_first_not_of("0123456789", 1) == std::string_view::npos);
}

/// One entry of MODEL_ARGS by the launcher's rules: `true` is the bare argument, `[a b]` several values, ""
/// none.
Argument to_argument(const SyntaxEntry& entry, const SourceMap& sources, bool quotes_operators) {
  Argument argument{entry.key, entry.key_span, {}};
  const SyntaxNode& node = entry.value;
  if (node.kind == SyntaxNode::Kind::list) {
    for (const SyntaxNode& item : node.items)
      add_words(argument_text(item, sources), item.span, argument.values);
    return argument;
  }
  if (node.kind != SyntaxNode::Kind::scalar || node.scalar == Value(true)) return argument;
  // The launcher passes an empty value as the bare argument, and `null` as that word.
  const std::string text =
      node.scalar.is_none() ? std::string(sources.text(node.span)) : argument_text(node, sources);
  if (text == "true" || text.empty()) return argument;
  if (text.size() > 2 && text.front() == '[' && text.back() == ']') {
    const std::string inner = text.substr(1, text.size() - 2);
    Span place = node.span;  // without quotes and brackets, where the text stands as it is
    if (const std::size_t at = sources.text(place).find(inner); at != std::string_view::npos) {
      place.begin += static_cast<std::uint32_t>(at);
      place.end = place.begin + static_cast<std::uint32_t>(inner.size());
    }
    add_words(inner, place, argument.values);
    return argument;
  }
  // Several words in one value are several values of a list; other arguments get the text as it is.
  const Flag* flag = builtin_flag_table().find(entry.key);
  if (flag != nullptr && flag->is_list)
    add_words(text, node.span, argument.values);
  else if (text.find_first_of("\\\"'") == std::string::npos)
    argument.values.push_back({text, node.span, true});
  else if (const auto launched = launched_text(text, quotes_operators))
    argument.values.push_back({*launched, node.span, true});
  else
    argument.values.push_back({text, node.span, false});
  return argument;
}

}  // namespace

std::optional<std::vector<Layer>> read_megatron_args(const ReadContext& context) {
  std::vector<SyntaxProblem> problems;
  const auto list = parse_megatron_arguments(context.file, context.sources, problems);
  for (const SyntaxProblem& problem : problems) context.sink.problem("SY008", problem.message, problem.where);
  if (!list || !problems.empty()) return std::nullopt;  // half of a text would give more, wrong findings
  context.record.comments = list->comments;
  for (const Span& command : list->further_commands) {
    context.sink.problem(
        "EX008", "this training command is not checked: of several, the one with the most arguments is",
        command);
    context.record.further_runs.push_back({"a training command", "a further run", command});
  }
  std::vector<Layer> layers = map_arguments(*list, context);
  if (is_sbatch(context.sources[context.file].bytes())) {
    std::vector<SyntaxProblem> repeated;  // of the shell text: reported above
    const SbatchScript batch = parse_sbatch(context.file, context.sources, repeated);
    LayerBuilder cluster(OriginKind::file, context.file);
    if (batch.nodes && batch.nodes->or_more)
      cluster.set_unknown("cluster.nodes", batch.nodes->key, batch.nodes->value);
    else if (batch.nodes)
      cluster.set("cluster.nodes", batch.nodes->key, Value(batch.nodes->count), batch.nodes->value);
    const bool by_tasks = launcher_shape(list->launcher).one_rank_per_task && batch.tasks_per_node;
    const auto& gpus = by_tasks ? batch.tasks_per_node : batch.gpus_per_node;
    if (gpus) cluster.set("cluster.gpus_per_node", gpus->key, Value(gpus->count), gpus->value);
    layers.insert(layers.begin() + 1, cluster.take());  // what srun and torchrun say wins
  }
  return layers;
}

std::optional<std::vector<Layer>> read_functional_test(const ReadContext& context) {
  const auto tree = read_yaml(context);
  if (!tree) return std::nullopt;
  ArgumentList list;
  const std::string run = context.run.empty() ? "MODEL_ARGS" : context.run;
  const SyntaxNode* arguments = is_run(run) ? find(*tree, run) : nullptr;
  const bool absent =
      arguments != nullptr && arguments->kind == SyntaxNode::Kind::scalar && arguments->scalar.is_none();
  if (arguments == nullptr || (arguments->kind != SyntaxNode::Kind::table && !absent)) {
    context.sink.problem("EX005",
                         context.run.empty() ? "a functional test has a mapping `MODEL_ARGS`"
                                             : fmt::format("the test has no mapping `{}` of arguments", run),
                         arguments != nullptr ? arguments->span : Span{context.file, 0, 0});
    return std::nullopt;
  }
  const Version* release = context.view.stack().version_of("megatron-lm");
  if (release == nullptr) release = context.view.stack().version_of("megatron-core");
  const bool quotes_operators = release == nullptr || !(*release < kFirstWithQuotes);
  for (const SyntaxEntry& entry : arguments->entries) {
    if (entry.value.kind == SyntaxNode::Kind::table) {
      report_refused(context, "EX002", entry.key,
                     fmt::format("the value of `{}` is a mapping; an argument takes words", entry.key),
                     entry.value.span);
      continue;
    }
    list.arguments.push_back(to_argument(entry, context.sources, quotes_operators));
    for (ArgumentValue& value : list.arguments.back().values) {
      // Paths and names may hold placeholders; numbers and choices may not.
      if (has_placeholder(value.text) && value.text.find('/') == std::string::npos &&
          value.text.starts_with("${") && value.text.find("PATH") == std::string::npos) {
        value.literal = false;
      }
    }
  }
  if (const SyntaxNode* variables = find(*tree, "ENV_VARS")) {
    const bool none = variables->kind == SyntaxNode::Kind::scalar && variables->scalar.is_none();
    if (variables->kind != SyntaxNode::Kind::table && !none)
      report_refused(context, "EX002", "ENV_VARS", "`ENV_VARS` must be a mapping of variables",
                     variables->span);
    for (const SyntaxEntry& entry : variables->entries) {
      if (entry.value.kind != SyntaxNode::Kind::scalar) {
        report_refused(context, "EX002", entry.key,
                       fmt::format("the variable `{}` must be a plain value", entry.key), entry.value.span);
        continue;
      }
      list.variables.push_back(
          {entry.key, entry.key_span, argument_text(entry.value, context.sources), entry.value.span});
    }
  }
  for (const SyntaxEntry& entry : tree->entries) {
    if (entry.key == run || entry.key == "ENV_VARS") continue;
    if (is_run(entry.key))
      report_further_run(context, entry.key, entry.key_span);
    else
      context.record.irrelevant.push_back({entry.key, "no arguments of this run", entry.key_span});
  }
  return map_arguments(list, context);
}

}  // namespace capstan
