#include "compiler/driver/compile_config.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>

#include "compiler/config/open_sections.h"
#include "compiler/diagnostics/finding_bound.h"
#include "compiler/diagnostics/render/display_text.h"
#include "compiler/diagnostics/render/render.h"
#include "compiler/driver/fold_undecided.h"
#include "compiler/driver/project_options.h"
#include "compiler/driver/selection_options.h"
#include "compiler/driver/suppressed_findings.h"
#include "compiler/facts/derive.h"
#include "compiler/fixes/suggest.h"
#include "compiler/plan/compile.h"
#include "compiler/plan/print.h"
#include "compiler/ruleset/evaluate.h"
#include "compiler/solve/check.h"
#include "grammar/source/utf8.h"

namespace capstan {
namespace {

/// A plan that takes seconds is announced, so that nobody takes the silence for a hang.
void announce_large_plan(const Config& config, const std::string& file) {
  constexpr std::int64_t kManyLayers = 1000;
  const Setting* layers = config.find("model.num_layers");
  if (layers == nullptr || layers->value.kind() != Value::Kind::integer ||
      layers->value.integer() <= kManyLayers || layers->value.integer() > plan::kMostLayers)
    return;
  std::fputs(fmt::format("compiling {} layers of {}: this takes a while\n", layers->value.integer(),
                         file == "-" ? "<stdin>" : safe_text(file))
                 .c_str(),
             stderr);
}

}  // namespace

CompiledConfig compile_config(const std::string& file, const ConfigOptions& given,
                              const std::string& last_pass) {
  ConfigOptions options = given;
  SelectionOptions selection_options;
  if (const auto project = project_for(file)) {
    add_project(*project, options, selection_options);
    if (!project->baseline.empty()) options.project_inputs.push_back(project->baseline);
  }

  CompiledConfig compiled;
  Sink sink;
  compiled.workspace = std::make_unique<Workspace>(options, sink);
  Workspace& workspace = *compiled.workspace;
  std::optional<PreparedConfig> prepared;
  std::optional<SourceId> source;
  workspace.require_usable(sink);
  source = workspace.read_source(file, "<stdin>", sink);
  if (source) prepared = workspace.prepare(*source, sink);
  if (prepared) {
    check_and_suggest({prepared->config, *prepared->schema, *prepared->rules, prepared->stack,
                       workspace.sources(), prepared->shared},
                      {}, sink);
  }
  compiled.findings = sink.take();
  if (prepared) {
    const std::vector<KnownCode> known = known_codes(workspace.rules());
    compiled.suppressed =
        suppress_findings(compiled.findings, *source, *prepared, workspace.sources(), known);
    apply_selection(compiled.findings, make_selection(selection_options, known), known);
    compiled.stack = stack_words(prepared->stack);
    compiled.further_inputs = workspace.further_inputs(prepared->config);
  }
  const bool refused =
      std::any_of(compiled.findings.begin(), compiled.findings.end(),
                  [](const Diagnostic& diagnostic) { return diagnostic.severity == Severity::error; });
  if (prepared && !refused) {
    if (!open_sections(prepared->config, *prepared->schema).names.empty()) {
      const auto named = prepared->config.sections.find("open");
      sink.problem("EX006", "the plan takes the defaults of keys that are open and not set",
                   named == prepared->config.sections.end() ? Span{*source, 0, 0} : named->second);
    }
    const Evaluation evaluation = evaluate(
        *prepared->rules, derive_facts(prepared->config, *prepared->schema, workspace.rules().names));
    // It names the run directory, too.
    std::string name = file == "-" ? "stdin" : std::filesystem::path(file).filename().string();
    if (find_invalid_utf8(name) != std::string::npos) name = safe_text(name);
    announce_large_plan(prepared->config, file);
    compiled.plan = plan::compile({prepared->config, *prepared->schema, &evaluation.final_facts, name,
                                   "capstan " CAPSTAN_VERSION, &workspace.sources()},
                                  sink, last_pass);
    std::vector<Diagnostic> more = sink.take();
    compiled.findings.insert(compiled.findings.end(), std::make_move_iterator(more.begin()),
                             std::make_move_iterator(more.end()));
  }
  RunSummary counted;
  fold_undecided(compiled.findings, counted);  // lint tells them
  bound_findings(compiled.findings);
  sort_for_output(compiled.findings);
  return compiled;
}

int report_compilation(const CompiledConfig& compiled) {
  if (!compiled.findings.empty()) {
    RunSummary summary;
    summary.files = 1;
    summary.suppressed = compiled.suppressed;
    summary.stack = compiled.stack;
    RenderOptions options;
    const char* no_color = std::getenv("NO_COLOR");
    options.color = isatty(STDERR_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
    std::fputs(render_text(compiled.findings, compiled.workspace->sources(), summary, options).c_str(),
               stderr);
  }
  return compiled.plan ? kExitClean : kExitFindings;
}

std::string summarize_plan(const plan::Plan& plan, const std::string& file, const std::string& stack) {
  const auto captured = static_cast<std::size_t>(
      std::count_if(plan.segments.begin(), plan.segments.end(),
                    [](const plan::Segment& segment) { return segment.mode == plan::SegmentMode::graph; }));
  const plan::MemorySummary& memory = plan.memory;
  std::string text = fmt::format("{} for {}: {} ops in {} segments, {} captured\n",
                                 file == "-" ? "<stdin>" : safe_text(file), stack, plan.ops.size(),
                                 plan.segments.size(), captured);
  text += fmt::format(
      "planned peak memory {}: parameters {}, masters {}, gradients {}, optimizer {}, activations {}\n",
      plan::print_bytes(memory.arena), plan::print_bytes(memory.parameters),
      plan::print_bytes(memory.masters), plan::print_bytes(memory.gradients),
      plan::print_bytes(memory.optimizer), plan::print_bytes(memory.activations_peak));
  return text;
}

}  // namespace capstan
