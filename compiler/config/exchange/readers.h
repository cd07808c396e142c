// One function per format; read_config() calls them.
#pragma once

#include "compiler/config/exchange/read_config.h"
#include "grammar/arguments/argument_list.h"
#include "grammar/source/syntax_tree.h"
#include "grammar/yaml/yaml_scalars.h"

namespace capstan {

class LayerBuilder;

struct ReadContext {
  SourceId file;
  const SchemaView& view;
  const SourceMap& sources;
  Sink& sink;
  ReadRecord& record;
  const std::string& run;  ///< which of several runs or recipes of the file; empty: the first
};

/// Maps arguments by the flag table and adds what Megatron-LM implies. Two layers: implied, then given.
std::vector<Layer> map_arguments(const ArgumentList& list, const ReadContext& context);

std::optional<std::vector<Layer>> read_megatron_args(const ReadContext& context);
std::optional<std::vector<Layer>> read_functional_test(const ReadContext& context);
std::optional<std::vector<Layer>> read_bridge_yaml(const ReadContext& context);
std::optional<std::vector<Layer>> read_python(const ReadContext& context);
std::optional<std::vector<Layer>> read_hydra(const ReadContext& context);
std::optional<std::vector<Layer>> read_hf_config(const ReadContext& context);

/// YAML (or JSON) in the file; reports SY007 and gives nothing when it cannot be read, EX007 for keys that
/// stand twice.
std::optional<SyntaxNode> read_yaml(const ReadContext& context, YamlScalars scalars = YamlScalars::core);
/// Reports EX001 and records it.
void report_unknown(const ReadContext& context, std::string name, std::string message, Span place);
/// Reports an error (EX002, EX003) about a value, and records it.
void report_refused(const ReadContext& context, const char* code, std::string name, std::string message,
                    Span place);
/// Reports EX004 and records it.
void report_not_literal(const ReadContext& context, std::string name, std::string why, Span place);
/// Reports EX008 and records it.
void report_further_run(const ReadContext& context, std::string name, Span place);
/// Sets a variable of the environment as a process gets it: text, or none for one that is not set. Values
/// that are no scalar are reported (EX004) and open.
void set_variable(const ReadContext& context, LayerBuilder& builder, const std::string& name, Span key,
                  const SyntaxNode& value);
/// True if the stack has the key (any name in `env` counts).
bool knows(const SchemaView& view, std::string_view path);

}  // namespace capstan
