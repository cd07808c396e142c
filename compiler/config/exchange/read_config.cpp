#include "compiler/config/exchange/read_config.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "compiler/config/exchange/layer_builder.h"
#include "compiler/config/exchange/readers.h"
#include "compiler/config/open_sections.h"
#include "grammar/yaml/yaml_comments.h"
#include "grammar/yaml/yaml_document.h"

namespace capstan {

const char* frontend_of_format(ConfigFormat format) {
  switch (format) {
    case ConfigFormat::megatron_args:
    case ConfigFormat::functional_test:
      return "megatron-lm";
    case ConfigFormat::bridge_yaml:
    case ConfigFormat::python:
    case ConfigFormat::hydra:
      return "bridge";
    case ConfigFormat::toml:
    case ConfigFormat::hf_config:
      return "";
  }
  return "";
}

void open_unset_keys(const ReadRecord& record, const SchemaView& view, Config& config) {
  if (record.unset_is_open) return open_unset_keys_of({}, view, config);
  const std::set<std::string> sections(record.open_sections.begin(), record.open_sections.end());
  for (const std::string& section : sections) open_unset_keys_of(section, view, config);
}

std::optional<SyntaxNode> read_yaml(const ReadContext& context, YamlScalars scalars) {
  SyntaxProblem problem;
  std::vector<SyntaxProblem> duplicates;
  std::optional<SyntaxNode> tree = parse_yaml(context.file, context.sources, problem, &duplicates, scalars);
  if (!tree)
    context.sink.problem("SY007", problem.message, problem.where);
  else
    context.record.comments = find_yaml_comments(context.file, context.sources, *tree);
  for (const SyntaxProblem& duplicate : duplicates)
    context.sink.problem("EX007", duplicate.message, duplicate.where);
  return tree;
}

void report_unknown(const ReadContext& context, std::string name, std::string message, Span place) {
  context.sink.problem("EX001", std::move(message), place);
  context.record.unknown.push_back({std::move(name), "unknown", place});
}

void report_refused(const ReadContext& context, const char* code, std::string name, std::string message,
                    Span place) {
  context.record.refused.push_back({std::move(name), message, place});
  context.sink.problem(code, std::move(message), place);
}

void report_not_literal(const ReadContext& context, std::string name, std::string why, Span place) {
  context.sink.problem("EX004", fmt::format("the value of `{}` is not known here: {}", name, why), place);
  context.record.not_literal.push_back({std::move(name), std::move(why), place});
}

void set_variable(const ReadContext& context, LayerBuilder& builder, const std::string& name, Span key,
                  const SyntaxNode& value) {
  if (value.kind == SyntaxNode::Kind::scalar) {
    const Value& given = value.scalar;
    const bool as_it_is = given.is_none() || given.kind() == Value::Kind::string;
    return builder.set("env." + name, key, as_it_is ? given : Value(to_text(given)), value.span);
  }
  report_not_literal(context, name,
                     value.kind == SyntaxNode::Kind::unsupported ? value.what : "it is no plain value",
                     value.span);
  builder.set_unknown("env." + name, key, value.span);
}

void report_further_run(const ReadContext& context, std::string name, Span place) {
  context.sink.problem("EX008", fmt::format("`{0}` is not checked here; `--run {0}` chooses it", name),
                       place);
  context.record.further_runs.push_back({std::move(name), "a further run", place});
}

bool knows(const SchemaView& view, std::string_view path) {
  return section_of(path) == kEnvironmentSection || view.find(path).spec != nullptr;
}

std::optional<std::vector<Layer>> read_config(SourceId file, ConfigFormat format, const SchemaView& view,
                                              SourceMap& sources, const FileReader& reader, Sink& sink,
                                              ReadRecord& record, const std::string& run) {
  const ReadContext context{file, view, sources, sink, record, run};
  const bool has_runs = format == ConfigFormat::functional_test || format == ConfigFormat::python;
  if (!run.empty() && !has_runs) {
    sink.problem(
        "EX005",
        fmt::format("a file of the format {} holds one run; there is no `{}`", format_name(format), run),
        Span{file, 0, 0});
    return std::nullopt;
  }
  switch (format) {
    case ConfigFormat::toml:
      return load_layers(file, sources, reader, sink);
    case ConfigFormat::megatron_args:
      return read_megatron_args(context);
    case ConfigFormat::functional_test:
      return read_functional_test(context);
    case ConfigFormat::bridge_yaml:
      return read_bridge_yaml(context);
    case ConfigFormat::python:
      return read_python(context);
    case ConfigFormat::hydra:
      return read_hydra(context);
    case ConfigFormat::hf_config:
      return read_hf_config(context);
  }
  return std::nullopt;
}

}  // namespace capstan
