#include "compiler/driver/report_options.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "compiler/diagnostics/selection.h"
#include "compiler/driver/usage_error.h"
#include "compiler/driver/write_output.h"

namespace capstan {
namespace {

using Renderer = std::string (*)(const std::vector<Diagnostic>&, const SourceMap&, const RunSummary&,
                                 const RenderOptions&);

struct Format {
  const char* name;
  Renderer render;
};
constexpr Format kFormats[] = {
    {"text", render_text},     {"concise", render_concise}, {"json", render_json},  {"sarif", render_sarif},
    {"github", render_github}, {"gitlab", render_gitlab},   {"junit", render_junit}};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

bool wants_color(const ReportOptions& options) {
  if (options.color != "auto") return options.color == "always";
  const char* no_color = std::getenv("NO_COLOR");
  return options.output.empty() && isatty(STDOUT_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

}  // namespace

void add_report_options(CLI::App& command, ReportOptions& options) {
  command.add_option("--format,--output-format", options.format, "format of the findings")
      ->check(CLI::IsMember(format_names()));
  command.add_option("--output,-o", options.output, "file for the findings instead of standard output")
      ->type_name("FILE");
  command.add_option("--color", options.color, "colours")->check(CLI::IsMember({"auto", "always", "never"}));
  command.add_option("--fail-level", options.fail_level, "least severity that makes the exit code 1")
      ->check(CLI::IsMember({"error", "warning", "hint"}));
  command.add_flag("--exit-zero", options.exit_zero, "exit with 0 whatever is found");
}

int report_findings(const std::vector<Diagnostic>& diagnostics, const SourceMap& sources,
                    const RunSummary& summary, const ReportOptions& options) {
  RenderOptions render_options;
  render_options.color = wants_color(options);
  render_options.version = CAPSTAN_VERSION;
  if (!options.fail_level.empty() && !parse_severity(options.fail_level, render_options.fail_level)) {
    throw UsageError(
        fmt::format("no severity is named `{}`; use error, warning or hint", options.fail_level));
  }
  const auto format = std::find_if(std::begin(kFormats), std::end(kFormats),
                                   [&](const Format& candidate) { return options.format == candidate.name; });
  if (format == std::end(kFormats)) throw UsageError(fmt::format("no format is named `{}`", options.format));
  const std::string text = format->render(diagnostics, sources, summary, render_options);
  write_output(options.output, text, sources, options.further_inputs);
  if (options.exit_zero) return kExitClean;
  if (fails(diagnostics, render_options.fail_level)) return kExitFindings;
  return kExitClean;
}

}  // namespace capstan
