#include "compiler/config/override_layer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "grammar/override/override_parser.h"

namespace capstan {
namespace {

constexpr std::array<std::string_view, 9> kJobPrefixes = {"CUBLAS_", "CUDA_",    "CUDNN_",   "GLOO_", "NCCL_",
                                                          "NVTE_",   "NVFUSER_", "PYTORCH_", "TORCH_"};

bool read_by_jobs(std::string_view name) {
  return std::any_of(kJobPrefixes.begin(), kJobPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

/// `value` below the tables of `path`, starting at its part `depth`.
SyntaxEntry nested_entry(const std::vector<std::string>& path, std::size_t depth, const Override& override) {
  SyntaxEntry entry{path[depth], override.key_span, override.value};
  if (depth + 1 < path.size()) {
    entry.value = SyntaxNode{};
    entry.value.kind = SyntaxNode::Kind::table;
    entry.value.span = override.value.span;
    entry.value.entries.push_back(nested_entry(path, depth + 1, override));
  }
  return entry;
}

}  // namespace

std::optional<Layer> read_override_layer(SourceId source, const SourceMap& sources, Sink& sink) {
  SyntaxProblem problem;
  const std::optional<Override> parsed = parse_override(source, sources, OverrideMode::single, problem);
  if (!parsed || parsed->path.empty()) {
    sink.problem("SY005", parsed ? "an override must name a key" : problem.message, problem.where);
    return std::nullopt;
  }
  constexpr std::size_t kMaxPath = 16;
  if (parsed->path.size() > kMaxPath) {
    sink.problem("SY005", fmt::format("the key of an override has more than {} parts", kMaxPath),
                 parsed->key_span);
    return std::nullopt;
  }
  Layer layer;
  layer.kind = OriginKind::override_argument;
  layer.source = source;
  if (parsed->kind == Override::Kind::remove) {
    layer.removed = parsed->path;
    layer.removed_span = parsed->key_span;
    return layer;
  }
  layer.must_be_new = parsed->kind == Override::Kind::add;
  layer.tree.kind = SyntaxNode::Kind::table;
  layer.tree.entries.push_back(nested_entry(parsed->path, 0, *parsed));
  return layer;
}

Layer environment_layer(const std::vector<Variable>& variables, OriginKind kind, SourceId source) {
  Layer layer;
  layer.kind = kind;
  layer.source = source;
  layer.tree.kind = SyntaxNode::Kind::table;
  SyntaxNode section;
  section.kind = SyntaxNode::Kind::table;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const Variable& variable : variables) {
    SyntaxNode value;
    value.scalar = Value(variable.value);
    value.span = variable.value_span;
    const auto [earlier, is_new] = places.emplace(variable.name, section.entries.size());
    if (is_new) section.entries.emplace_back().key = variable.name;
    section.entries[earlier->second].key_span = variable.name_span;
    section.entries[earlier->second].value = std::move(value);
  }
  if (!section.entries.empty()) {
    layer.tree.entries.push_back({std::string(kEnvironmentSection), Span{}, std::move(section)});
  }
  return layer;
}

std::string process_environment_text() {
  std::vector<std::string_view> lines;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view line = *variable;
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || line.find('\n') != std::string_view::npos) continue;
    if (read_by_jobs(line.substr(0, equals))) lines.push_back(line);
  }
  std::sort(lines.begin(), lines.end());
  std::string text;
  for (const std::string_view line : lines) (text += line) += '\n';
  return text;
}

std::vector<Variable> read_process_environment(SourceId source, const SourceMap& sources) {
  std::vector<Variable> variables;
  const std::string_view text = sources[source].bytes();
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (const auto equals = line.find('='); equals != std::string_view::npos) {
      const auto at = [&](std::size_t offset) { return static_cast<std::uint32_t>(begin + offset); };
      variables.push_back({std::string(line.substr(0, equals)),
                           {source, at(0), at(equals)},
                           std::string(line.substr(equals + 1)),
                           {source, at(equals + 1), at(line.size())}});
    }
    begin = end + 1;
  }
  return variables;
}

}  // namespace capstan
