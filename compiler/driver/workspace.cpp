#include "compiler/driver/workspace.h"

#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "compiler/config/bind.h"
#include "compiler/config/override_layer.h"
#include "compiler/diagnostics/finding_bound.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/distinct_paths.h"
#include "compiler/driver/usage_error.h"
#include "compiler/ruleset/resolve.h"

namespace capstan {
namespace {

std::string key_of(const Stack& stack) {
  std::string key = stack.name;
  for (const auto& [component, version] : stack.components)
    key += fmt::format(" {}={}", component, to_text(version));
  return key;
}

}  // namespace

Workspace::Workspace(const ConfigOptions& options, Sink& sink) : options_(options) {
  const std::size_t errors = sink.count(Severity::error);
  if (!options.target.empty() && schema().find_stack(options.target) == nullptr) {
    const SourceId source = sources_.add("--target", options.target, SourceKind::override_argument);
    const auto length = static_cast<std::uint32_t>(options.target.size());
    report_unknown_stack(options.target, schema(), {source, 0, length}, sink);
  }
  if (options.rule_folders.empty()) {
    rules_ = load_builtin_rules();
  } else {
    std::vector<RuleFile> files = builtin_rule_files();
    for (const std::string& folder : distinct_paths(options.rule_folders)) {
      std::vector<RuleFile> more = load_rule_folder(folder, sources_, sink);
      files.insert(files.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    }
    rules_ = resolve(files, builtin_phases(), schema(), sink);
  }

  if (options.env_from_process) {
    if (auto layer = process_environment_layer(process_environment(), sources_, sink))
      environment_layers_.push_back(std::move(*layer));
  }
  for (const std::string& path : options.env_files) {
    const std::optional<SourceId> source = read_source(path, path, sink);
    if (!source) continue;
    if (auto layer = read_environment_file_layer(*source, sources_, sink))
      environment_layers_.push_back(std::move(*layer));
  }
  for (const std::string& argument : options.overrides) {
    const SourceId source = sources_.add("--set", argument, SourceKind::override_argument);
    if (auto layer = read_override_layer(source, sources_, sink))
      override_layers_.push_back(std::move(*layer));
  }
  ok_ = sink.count(Severity::error) == errors;
}

void Workspace::require_usable(const Sink& sink) const {
  if (ok_) return;
  std::vector<Diagnostic> shown = sink.diagnostics();
  bound_findings(shown);
  sort_for_output(shown);
  std::fputs(render_text(shown, sources_, {}, {}).c_str(), stderr);
  throw UsageError("");
}

std::vector<std::string> Workspace::further_inputs(const Config& config) const {
  std::vector<std::string> files = options_.project_inputs;
  const auto add = [&files](const Value& value) {
    if (value.kind() != Value::Kind::string) return;
    for (const char* const ending : {"", ".bin", ".idx"}) files.push_back(value.string() + ending);
  };
  for (const auto& [path, setting] : config.settings) {
    add(setting.value);
    if (setting.value.kind() != Value::Kind::list) continue;
    for (const Value& item : setting.value.list()) add(item);
  }
  return files;
}

std::optional<std::string> Workspace::read_standard_input(ReadFailure& failure) {
  if (standard_input_taken_) throw UsageError("standard input (`-`) can be read only once");
  standard_input_taken_ = true;
  // Commands that read a config for two stacks have two workspaces and one standard input.
  static std::optional<std::string> text;
  if (!text) text = read_text_file("/dev/stdin", failure);
  return text;
}

std::optional<SourceId> Workspace::read_source(const std::string& path,
                                               const std::string& standard_input_name, Sink& sink) {
  const bool standard_input = path == "-";
  // `@file` holds arguments, as shells' users know it; a file of that very name wins.
  std::error_code error;
  const bool arguments = path.size() > 1 && path[0] == '@' && !std::filesystem::exists(path, error);
  const std::string name = standard_input ? standard_input_name : arguments ? path.substr(1) : path;
  const SourceKind kind = standard_input ? SourceKind::standard_input : SourceKind::file;
  ReadFailure failure;
  std::optional<std::string> text =
      standard_input ? read_standard_input(failure) : read_text_file(name, failure);
  if (!text) {
    const SourceId source = sources_.add(name, {}, kind);
    sink.problem("SY002", fmt::format("cannot read `{}`: {}", name, failure.reason), {source, 0, 0});
    return std::nullopt;
  }
  const SourceId source = sources_.add(name, std::move(*text), kind);
  if (arguments) argument_files_.insert(source);
  return source;
}

std::optional<PreparedConfig> Workspace::prepare(SourceId file, Sink& sink) {
  return prepare(file, disk_reader(), sink);
}

std::optional<PreparedConfig> Workspace::prepare(SourceId file, const FileReader& reader, Sink& sink) {
  PreparedConfig prepared;
  std::optional<std::vector<Layer>> layers = read_layers(file, reader, prepared, sink);
  if (!layers) return std::nullopt;
  layers->insert(layers->end(), environment_layers_.begin(), environment_layers_.end());
  layers->insert(layers->end(), override_layers_.begin(), override_layers_.end());

  const std::size_t errors = sink.count(Severity::error);
  prepared.config = compose(*layers, sink);
  std::optional<StackChoice> stack = choose_stack(prepared.config, schema(), options_.target, sink);
  if (!stack) {
    check_keys_of_any_release(std::move(prepared.config), sink);
    return std::nullopt;
  }
  prepared.stack = std::move(*stack);
  PerStack& known = of(prepared.stack.stack);
  prepared.schema = known.view.get();
  prepared.rules = &known.rules;
  prepared.shared = known.shared.get();
  bind(prepared.config, *prepared.schema, sink);
  open_unset_keys(prepared.record, *prepared.schema, prepared.config);
  prepared.bound = sink.count(Severity::error) == errors;
  return prepared;
}

std::optional<std::vector<Layer>> Workspace::read_layers(SourceId file, const FileReader& reader,
                                                         PreparedConfig& prepared, Sink& sink) {
  prepared.format = detect_format(sources_[file].name(), sources_[file].bytes());
  if (!options_.input_format.empty()) {
    const std::optional<ConfigFormat> format = parse_format(options_.input_format);
    if (!format) throw UsageError(fmt::format("`{}` is no input format", options_.input_format));
    prepared.format = *format;
  }
  if (options_.input_format.empty() && argument_files_.contains(file))
    prepared.format = ConfigFormat::megatron_args;
  if (prepared.format == ConfigFormat::toml && options_.run.empty())
    return load_layers(file, sources_, reader, sink);
  // Which of several keys an argument sets depends on the stack, so the stack is chosen before the text is
  // mapped.
  Config stated;
  if (const std::string frontend = frontend_of_format(prepared.format); !frontend.empty()) {
    stated.settings["target.frontend"] = {
        "target.frontend", Value(frontend), {OriginKind::imported, {}, {}}, {}, {}, {}};
  }
  const std::optional<StackChoice> stack = choose_stack(stated, schema(), options_.target, sink);
  if (!stack) return std::nullopt;
  return read_config(file, prepared.format, *of(stack->stack).view, sources_, reader, sink, prepared.record,
                     options_.run);
}

void Workspace::check_keys_of_any_release(Config config, Sink& sink) {
  Config untargeted = config;
  std::erase_if(untargeted.settings, [](const auto& entry) { return section_of(entry.first) == "target"; });
  Sink found;
  const std::optional<StackChoice> assumed = choose_stack(untargeted, schema(), {}, found);
  if (!assumed) return;
  bind(config, *of(assumed->stack).view, found);
  for (Diagnostic& diagnostic : found.take()) {
    const std::string& code = diagnostic.code;
    if (code == "TY001" || code == "TY002" || code == "TY004") sink.report(std::move(diagnostic));
  }
}

Workspace::PerStack& Workspace::of(const Stack& stack) {
  if (last_stack_ != nullptr && last_stack_->stack.name == stack.name &&
      last_stack_->stack.components == stack.components)
    return *last_stack_;
  const auto [found, is_new] = stacks_.try_emplace(key_of(stack));
  PerStack& entry = found->second;
  if (is_new) {
    entry.stack = stack;
    entry.view = std::make_unique<SchemaView>(schema(), entry.stack);
    entry.rules = select(rules_, entry.stack);
    entry.shared = std::make_unique<StackRules>(*entry.view, entry.rules);
  }
  last_stack_ = &entry;
  return entry;
}

}  // namespace capstan
