#include "compiler/driver/command_resolve.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/config/exchange/effective.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/driver/resolved_file.h"
#include "compiler/driver/write_output.h"

namespace capstan {
namespace {

struct ResolveOptions {
  std::string file;
  std::string format = "text";
  bool set_only = false;
  ConfigOptions config;
};

std::string place_of(const EffectiveValue& value, const SourceMap& sources) {
  if (value.setting == nullptr) return "";
  const Span place =
      value.setting->origin.key.exists() ? value.setting->origin.key : value.setting->origin.value;
  return place_text(sources, place);
}

std::string words(const EffectiveValue& value) {
  return value.default_text.empty() ? to_text(value.value) : value.default_text;
}

int resolve(const ResolveOptions& options) {
  const ResolvedFile file = resolve_file(options.file, options.config, false);
  if (!file.prepared) return kExitFindings;
  const auto values = effective_config(file.prepared->config, *file.prepared->schema);
  const std::string digest = effective_digest(values);
  const SourceMap& sources = file.workspace->sources();
  const StackChoice& stack = file.prepared->stack;
  if (options.format == "json") {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const EffectiveValue& value : values) {
      if (options.set_only && value.setting == nullptr) continue;
      const std::string place = place_of(value, sources);
      list.push_back(
          {{"key", value.path},
           {"value", words(value)},
           {"origin", value.open ? "open" : origin_kind_name(value.origin)},
           {"place", place.empty() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(place)}});
    }
    const nlohmann::ordered_json out = {{"version", 1},
                                        {"stack", stack.stack.name},
                                        {"assumed", stack.assumed},
                                        {"digest", digest},
                                        {"values", list}};
    write_output("", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", {});
  } else {
    std::string text;
    for (const EffectiveValue& value : values) {
      if (options.set_only && value.setting == nullptr) continue;
      const std::string place = place_of(value, sources);
      text +=
          fmt::format("{} = {}  # {}{}{}\n", value.path, words(value),
                      value.open ? "open" : origin_kind_name(value.origin), place.empty() ? "" : " ", place);
    }
    text = safe_text(text, true);
    text += fmt::format("stack {}\ndigest {}\n", stack_words(stack), digest);
    write_output("", text, {});
  }
  return file.has_errors ? kExitFindings : kExitClean;
}

}  // namespace

void add_resolve_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ResolveOptions>();
  CLI::App* command =
      program.add_subcommand("resolve", "every value of a config with its origin, and their digest");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  command->add_flag("--set-only", options->set_only, "leave defaults out (the digest still counts them)");
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = resolve(*options); });
}

}  // namespace capstan
