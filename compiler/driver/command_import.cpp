#include "compiler/driver/command_import.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <string>

#include "compiler/config/exchange/write_config.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/driver/resolved_file.h"
#include "compiler/driver/write_output.h"

namespace capstan {
namespace {

struct ImportOptions {
  std::string file;
  std::string output;
  ConfigOptions config;
};

std::string comment(const std::string& text) {
  return "# " + safe_text(text) + "\n";
}

std::string listed(const char* title, const std::vector<ReadRecord::Entry>& entries,
                   const SourceMap& sources) {
  if (entries.empty()) return {};
  std::string out = comment(title);
  for (const ReadRecord::Entry& entry : entries) {
    std::string place;
    if (entry.place.exists())
      place = fmt::format(" (line {})", sources[entry.place.source].locate(entry.place.begin).line);
    out += comment(fmt::format("  {}{}: {}", entry.name, place, entry.why));
  }
  return out;
}

int import_config(const ImportOptions& options) {
  ResolvedFile file = resolve_file(options.file, options.config, true);
  if (!file.prepared) return kExitFindings;
  PreparedConfig& prepared = *file.prepared;
  const SourceMap& sources = file.workspace->sources();
  // The stack stands for what the format implied about the front-end.
  Setting stack;
  stack.path = "target.stack";
  stack.value = Value(prepared.stack.stack.name);
  prepared.config.settings.erase("target.frontend");
  prepared.config.settings["target.stack"] = stack;
  const WrittenConfig written = write_config(prepared.config, *prepared.schema, ExportFormat::toml);
  std::string header = comment(fmt::format("Imported from {} ({}) for {}.",
                                           options.file == "-" ? "standard input" : options.file,
                                           format_name(prepared.format), prepared.stack.stack.name));
  if (prepared.record.total > 0) {
    header += comment(fmt::format("{} of {} arguments or settings have a key.", prepared.record.mapped,
                                  prepared.record.total));
  }
  header += listed("No part of a config:", prepared.record.irrelevant, sources);
  header += listed("Not known, left out:", prepared.record.unknown, sources);
  header += listed("Refused:", prepared.record.refused, sources);
  header += listed("Further runs or recipes of the file, not read:", prepared.record.further_runs, sources);
  header += listed("Values that are not known here, open below (`?`):", prepared.record.not_literal, sources);
  const auto open_elsewhere = [&](std::string_view what) {
    header += comment(
        fmt::format("Something that is not known here may set further keys{}; `open` says that what is not "
                    "written below need not hold its default.",
                    what));
  };
  if (prepared.record.unset_is_open) open_elsewhere("");
  for (const std::string& section : prepared.record.open_sections)
    if (!prepared.record.unset_is_open) open_elsewhere(fmt::format(" of `{}`", section));
  if (!written.left_out.empty()) {
    header += comment("Not said in TOML:");
    for (const WrittenConfig::LeftOut& left : written.left_out)
      header += comment(fmt::format("  {}: {}", left.path, left.why));
  }
  write_output(options.output, header + "\n" + written.text, sources,
               file.workspace->further_inputs(prepared.config));
  return file.has_errors ? kExitFindings : kExitClean;
}

}  // namespace

void add_import_command(CLI::App& program, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  CLI::App* command = program.add_subcommand("import", "write a config of another format as TOML");
  command
      ->add_option("file", options->file,
                   "arguments, script, YAML, recipe, overrides or config.json; - for standard input")
      ->required()
      ->type_name("FILE");
  command->add_option("--output,-o", options->output, "file instead of standard output")->type_name("FILE");
  add_config_options(*command, options->config);
  command->callback([options, &exit_code] { exit_code = import_config(*options); });
}

}  // namespace capstan
