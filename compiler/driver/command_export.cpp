#include "compiler/driver/command_export.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "compiler/config/exchange/write_config.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/driver/resolved_file.h"
#include "compiler/driver/write_output.h"

namespace capstan {
namespace {

struct ExportOptions {
  std::string file;
  std::string to;
  std::string output;
  ConfigOptions config;
};

int export_config(const ExportOptions& options) {
  const ResolvedFile file = resolve_file(options.file, options.config, false);
  if (!file.prepared) return kExitFindings;
  const WrittenConfig written =
      write_config(file.prepared->config, *file.prepared->schema, *parse_export_format(options.to));
  write_output(options.output, written.text, file.workspace->sources(),
               file.workspace->further_inputs(file.prepared->config));
  std::string differences;
  using Kind = WrittenConfig::LeftOut::Kind;
  for (const Kind kind : {Kind::lost, Kind::added}) {
    std::string list;
    std::size_t count = 0;
    for (const WrittenConfig::LeftOut& left : written.left_out) {
      if (left.kind != kind) continue;
      ++count;
      list += fmt::format("  {}: {}\n", safe_text(left.path), safe_text(left.why));
    }
    if (count == 0) continue;
    const char* const plural = count == 1 ? "" : "s";
    differences += kind == Kind::added
                       ? fmt::format("capstan: {} key{} that the config does not set get{} a value:\n", count,
                                     plural, count == 1 ? "s" : "")
                       : fmt::format("capstan: {} setting{} not said in {}:\n", count, plural, options.to);
    differences += list;
  }
  if (options.to == "env") {
    const auto others = static_cast<std::size_t>(
        std::count_if(file.prepared->config.settings.begin(), file.prepared->config.settings.end(),
                      [](const auto& entry) { return section_of(entry.first) != kEnvironmentSection; }));
    if (others > 0)
      differences +=
          fmt::format("capstan: {} setting{} outside of `[env]` {} no environment variable{}\n", others,
                      others == 1 ? "" : "s", others == 1 ? "is" : "are", others == 1 ? "" : "s");
  }
  std::fputs(differences.c_str(), stderr);
  return file.has_errors ? kExitFindings : kExitClean;
}

}  // namespace

void add_export_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ExportOptions>();
  CLI::App* command = program.add_subcommand("export", "write a config in a format that others read");
  command->add_option("file", options->file, "config file, or - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--to", options->to, "bridge-yaml, megatron-args, python, hydra, env or toml")
      ->required()
      ->check(CLI::IsMember({"bridge-yaml", "megatron-args", "python", "hydra", "env", "toml"}));
  command->add_option("--output,-o", options->output, "file instead of standard output")->type_name("FILE");
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = export_config(*options); });
}

}  // namespace capstan
