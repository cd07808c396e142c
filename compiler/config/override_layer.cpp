#include "compiler/config/override_layer.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <unordered_map>

#include <fmt/format.h>

#include "compiler/diagnostics/render/display_text.h"
#include "grammar/environment/sbatch.h"
#include "grammar/override/override_parser.h"
#include "grammar/source/utf8.h"

namespace capstan {
namespace {

constexpr std::array<std::string_view, 9> kJobPrefixes = {"CUBLAS_", "CUDA_",    "CUDNN_",   "GLOO_", "NCCL_",
                                                          "NVTE_",   "NVFUSER_", "PYTORCH_", "TORCH_"};

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

/// Problems of one environment file that are told one by one; a file of another kind has one a line.
constexpr std::size_t kMostProblems = 10;

/// The first byte that no text file holds; npos when there is none.
std::size_t find_binary(std::string_view text) {
  return std::min(text.find('\0'), find_invalid_utf8(text));
}

}  // namespace

bool is_job_variable(std::string_view name) {
  return std::any_of(kJobPrefixes.begin(), kJobPrefixes.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

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

Layer environment_layer(const std::vector<EnvironmentVariable>& variables, OriginKind kind, SourceId source) {
  Layer layer;
  layer.kind = kind;
  layer.source = source;
  layer.tree.kind = SyntaxNode::Kind::table;
  SyntaxNode section;
  section.kind = SyntaxNode::Kind::table;
  std::unordered_map<std::string_view, std::size_t> places;
  for (const EnvironmentVariable& variable : variables) {
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

std::optional<Layer> read_environment_file_layer(SourceId source, const SourceMap& sources, Sink& sink) {
  const std::string_view text = sources[source].bytes();
  if (const std::size_t bad = find_binary(text); bad != std::string_view::npos) {
    const auto at = static_cast<std::uint32_t>(bad);
    sink.problem(
        "SY006",
        fmt::format("the file is no text: byte 0x{:02X} is {} here", static_cast<unsigned char>(text[bad]),
                    text[bad] == '\0' ? "not allowed" : "no valid UTF-8"),
        {source, at, at + 1});
    return std::nullopt;
  }
  std::vector<SyntaxProblem> problems;
  Layer layer;
  if (is_sbatch(text)) {
    const SbatchScript script = parse_sbatch(source, sources, problems);
    layer = environment_layer(script.variables, OriginKind::environment_file, source);
    SyntaxNode cluster;
    cluster.kind = SyntaxNode::Kind::table;
    const auto add_count = [&](const char* key, const std::optional<CountWithPlace>& count) {
      if (!count) return;
      SyntaxNode value;
      value.scalar = count->or_more ? Value("?") : Value(count->count);
      value.span = count->value;
      cluster.entries.push_back({key, count->key, std::move(value)});
    };
    add_count("nodes", script.nodes);
    add_count("gpus_per_node", script.gpus_per_node);
    if (!cluster.entries.empty()) layer.tree.entries.push_back({"cluster", Span{}, std::move(cluster)});
    if (!script.gpu.empty()) {
      SyntaxNode target;
      target.kind = SyntaxNode::Kind::table;
      SyntaxNode gpu;
      gpu.scalar = Value(script.gpu);
      if (script.gpus_per_node) gpu.span = script.gpus_per_node->value;
      target.entries.push_back({"gpu", gpu.span, std::move(gpu)});
      layer.tree.entries.push_back({"target", Span{}, std::move(target)});
    }
  } else {
    layer =
        environment_layer(parse_env_file(source, sources, problems), OriginKind::environment_file, source);
  }
  for (std::size_t i = 0; i < std::min(problems.size(), kMostProblems); ++i)
    sink.problem("SY006", std::move(problems[i].message), problems[i].where);
  if (problems.size() > kMostProblems) {
    sink.problem("SY006",
                 fmt::format("{} more problems from here on are not shown", problems.size() - kMostProblems),
                 problems[kMostProblems].where);
  }
  if (!problems.empty()) return std::nullopt;
  return layer;
}

std::vector<std::string> process_environment() {
  std::vector<std::string> found;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    const std::string_view entry = *variable;
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos && is_job_variable(entry.substr(0, equals)))
      found.emplace_back(entry);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::optional<Layer> process_environment_layer(const std::vector<std::string>& variables, SourceMap& sources,
                                               Sink& sink) {
  std::string text;
  for (const std::string& variable : variables) (text += variable) += '\n';
  const SourceId source = sources.add("environment", std::move(text), SourceKind::environment);
  std::vector<EnvironmentVariable> parts;
  bool readable = true;
  std::size_t begin = 0;
  for (const std::string& variable : variables) {
    const auto at = [&](std::size_t offset) { return static_cast<std::uint32_t>(begin + offset); };
    const std::size_t equals = variable.find('=');
    const std::string name = variable.substr(0, equals);
    if (const std::size_t invalid = find_invalid_utf8(variable); invalid != std::string::npos) {
      readable = false;
      sink.problem("SY006",
                   fmt::format("`{}` of this process holds bytes that are no valid UTF-8", safe_text(name)),
                   {source, at(invalid), at(invalid + 1)});
    }
    parts.push_back({name,
                     {source, at(0), at(equals)},
                     variable.substr(equals + 1),
                     {source, at(equals + 1), at(variable.size())}});
    begin += variable.size() + 1;
  }
  if (!readable) return std::nullopt;
  return environment_layer(parts, OriginKind::environment, source);
}

}  // namespace capstan
