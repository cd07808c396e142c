#include "compiler/driver/command_diff.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "compiler/config/exchange/effective.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/place.h"
#include "compiler/driver/resolved_file.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/write_output.h"

namespace capstan {
namespace {

struct DiffOptions {
  std::string before, after;
  std::string target_after;
  std::string format = "text";
  ConfigOptions config;
};

std::string value_words(const EffectiveValue* value) {
  if (value == nullptr) return "(no such key)";
  return value->default_text.empty() ? to_text(value->value) : value->default_text;
}

std::string origin_words(const EffectiveValue* value, const SourceMap& sources) {
  if (value == nullptr) return "";
  if (value->setting == nullptr) return value->open ? "open" : "default";
  const Span place =
      value->setting->origin.key.exists() ? value->setting->origin.key : value->setting->origin.value;
  return place.exists() ? place_text(sources, place) : origin_kind_name(value->origin);
}

/// One config leaves the key open, the other one does not set it: no difference that anyone wrote.
bool is_open_beside_unset(const EffectiveDifference& difference) {
  const auto is_set = [](const EffectiveValue* value) {
    return value != nullptr && value->setting != nullptr;
  };
  const auto is_open = [](const EffectiveValue* value) { return value != nullptr && value->open; };
  return !is_set(difference.before) && !is_set(difference.after) &&
         (is_open(difference.before) || is_open(difference.after));
}

int diff(const DiffOptions& options) {
  if (options.before == "-" && options.after == "-")
    throw UsageError("standard input (`-`) can be read only once");
  const ResolvedFile before = resolve_file(options.before, options.config, false);
  ConfigOptions after_options = options.config;
  if (!options.target_after.empty()) after_options.target = options.target_after;
  const ResolvedFile after = resolve_file(options.after, after_options, false);
  if (!before.prepared || !after.prepared) return kExitUsage;
  const auto a = effective_config(before.prepared->config, *before.prepared->schema);
  const auto b = effective_config(after.prepared->config, *after.prepared->schema);
  std::vector<EffectiveDifference> differences = compare(a, b);
  const auto not_comparable = static_cast<std::size_t>(std::erase_if(differences, is_open_beside_unset));
  const std::string &stack_a = before.prepared->stack.stack.name, &stack_b = after.prepared->stack.stack.name;
  if (options.format == "json") {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const EffectiveDifference& difference : differences) {
      list.push_back(
          {{"key", difference.path},
           {"before", difference.before == nullptr ? nlohmann::ordered_json(nullptr)
                                                   : nlohmann::ordered_json(value_words(difference.before))},
           {"after", difference.after == nullptr ? nlohmann::ordered_json(nullptr)
                                                 : nlohmann::ordered_json(value_words(difference.after))},
           {"before_origin", origin_words(difference.before, before.workspace->sources())},
           {"after_origin", origin_words(difference.after, after.workspace->sources())}});
    }
    const nlohmann::ordered_json out = {{"version", 1},
                                        {"before", {{"stack", stack_a}, {"digest", effective_digest(a)}}},
                                        {"after", {{"stack", stack_b}, {"digest", effective_digest(b)}}},
                                        {"not_comparable", not_comparable},
                                        {"differences", list}};
    write_output("", out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n", {});
  } else {
    std::string text;
    for (const EffectiveDifference& difference : differences) {
      text += fmt::format("{}: {} -> {}", difference.path, value_words(difference.before),
                          value_words(difference.after));
      const std::string from = origin_words(difference.before, before.workspace->sources());
      const std::string to = origin_words(difference.after, after.workspace->sources());
      text += fmt::format("  ({} -> {})\n", from.empty() ? "absent" : from, to.empty() ? "absent" : to);
    }
    text = safe_text(text, true);
    text += differences.empty()
                ? fmt::format("no difference; stacks {} and {}\n", stack_a, stack_b)
                : fmt::format("{} key{}; stacks {} and {}\n", differences.size(),
                              differences.size() == 1 ? " differs" : "s differ", stack_a, stack_b);
    if (not_comparable > 0) {
      text +=
          fmt::format("{} key{} that one of them leaves open and the other does not set {} not compared\n",
                      not_comparable, not_comparable == 1 ? "" : "s", not_comparable == 1 ? "is" : "are");
    }
    write_output("", text, {});
  }
  return differences.empty() ? kExitClean : kExitFindings;
}

}  // namespace

void add_diff_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command =
      program.add_subcommand("diff", "how two configs differ, after defaults and renamed keys");
  command->add_option("before", options->before, "config file")->required()->type_name("A");
  command->add_option("after", options->after, "config file")->required()->type_name("B");
  command->add_option("--target-after", options->target_after,
                      "stack of the second config, when it is another one than --target");
  command->add_option("--format", options->format, "text or json")->check(CLI::IsMember({"text", "json"}));
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = diff(*options); });
}

}  // namespace capstan
