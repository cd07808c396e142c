#include "runtime/report/run_report.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace capstan::runtime {
namespace {

using Json = nlohmann::ordered_json;

/// JSON has no NaN and no infinity: they become null.
Json json_number(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

Json spread_json(const Spread& spread) {
  if (spread.count == 0) return nullptr;
  return {{"count", spread.count},
          {"mean", json_number(spread.mean)},
          {"median", json_number(spread.median)},
          {"minimum", json_number(spread.minimum)},
          {"maximum", json_number(spread.maximum)},
          {"quartile1", json_number(spread.quartile1)},
          {"quartile3", json_number(spread.quartile3)}};
}

double per_second(double amount, const Spread& step_ms) {
  return step_ms.count > 0 && step_ms.median > 0 ? amount * 1000.0 / step_ms.median : 0.0;
}

Json speed_json(const RunReport& report, const Spread& step_ms, const Spread& issue_us) {
  if (step_ms.count == 0) return nullptr;
  const plan::Dims& dims = report.plan->dims;
  return {
      {"step_ms", spread_json(step_ms)},
      {"host_issue_us", spread_json(issue_us)},
      {"tokens_per_s",
       json_number(per_second(static_cast<double>(dims.tokens() * dims.micro_batches), step_ms))},
      {"model_tflops_per_s", json_number(per_second(report.plan->model_flops_per_step, step_ms) * 1e-12)}};
}

Json graphs_json(const RunReport& report) {
  Json segments = Json::array();
  std::uint64_t nodes = 0, edges = 0, bytes = 0;
  double capture = 0, instantiate = 0;
  for (const CapturedSegment& captured : report.captures) {
    const plan::Segment& segment = report.plan->segments[captured.segment];
    segments.push_back({{"segment", captured.segment},
                        {"scope", segment.scope},
                        {"layer", segment.layer},
                        {"phase", plan::phase_name(segment.phase)},
                        {"ops", segment.end_op - segment.first_op},
                        {"nodes", captured.info.nodes},
                        {"edges", captured.info.edges},
                        {"capture_seconds", captured.info.capture_seconds},
                        {"instantiate_seconds", captured.info.instantiate_seconds},
                        {"bytes", captured.info.bytes}});
    nodes += captured.info.nodes;
    edges += captured.info.edges;
    bytes += captured.info.bytes;
    capture += captured.info.capture_seconds;
    instantiate += captured.info.instantiate_seconds;
  }
  return {{"count", report.captures.size()},
          {"nodes", nodes},
          {"edges", edges},
          {"bytes", bytes},
          {"seconds", report.capture_seconds},
          {"capture_seconds", capture},
          {"instantiate_seconds", instantiate},
          {"segments", segments}};
}

Json memory_json(const RunReport& report) {
  const plan::MemorySummary& planned = report.plan->memory;
  const double ratio =
      planned.arena > 0 ? static_cast<double>(report.memory.peak) / static_cast<double>(planned.arena) : 0;
  return {{"planned_arena", planned.arena},
          {"planned",
           {{"parameters", planned.parameters},
            {"masters", planned.masters},
            {"gradients", planned.gradients},
            {"optimizer", planned.optimizer},
            {"activations_peak", planned.activations_peak},
            {"workspaces_peak", planned.workspaces_peak},
            {"inputs_and_scalars", planned.inputs_and_scalars}}},
          {"measured_arena", report.memory.arena},
          {"measured_other", report.memory.other},
          {"measured_peak", report.memory.peak},
          {"measured_baseline", report.memory.baseline},
          {"measured_peak_before_capture", report.memory_before_capture.peak},
          {"measured_over_planned", json_number(ratio)}};
}

/// The evidence card of a capture experiment.
Json comparison_json(const RunReport& report) {
  const Comparison& found = *report.comparison;
  const plan::Plan& plan = *report.plan;
  std::set<std::string> scopes;
  std::set<std::int32_t> layers;
  for (const plan::Segment& segment : plan.segments) {
    if (segment.mode != plan::SegmentMode::graph) continue;
    scopes.insert(segment.scope);
    if (segment.layer >= 0) layers.insert(segment.layer);
    if (!segment.whole_iteration) continue;
    for (std::int32_t layer = 0; layer < plan.dims.layers; ++layer) layers.insert(layer);
  }
  const auto tflops = [&](const Spread& step) {
    return json_number(per_second(plan.model_flops_per_step, step) * 1e-12);
  };
  return {{"model", plan.config_name},
          {"task", "pretrain"},
          {"parallelism", "1 rank"},
          {"nodes", 1},
          {"gpu", report.device.name},
          {"implementation", plan.schedule.graph_impl},
          {"scope", scopes},
          {"baseline_iteration_ms", json_number(found.eager_ms.median)},
          {"graph_iteration_ms", json_number(found.captured_ms.median)},
          {"speedup_percent", json_number(found.speedup_percent)},
          {"baseline_tflops_per_gpu", tflops(found.eager_ms)},
          {"graph_tflops_per_gpu", tflops(found.captured_ms)},
          {"loss_match", found.loss_match},
          {"loss_max_delta", json_number(found.loss_max_delta)},
          {"graphable_layers_per_stage", Json::array({layers.size()})},
          {"capture_seconds", report.capture_seconds},
          {"memory_delta", found.memory_delta},
          {"status", report.status},
          {"error", report.diagnostics.empty() ? Json(nullptr) : Json(report.diagnostics.front().message)},
          {"verdict", found.verdict},
          {"eager_ms", spread_json(found.eager_ms)},
          {"captured_ms", spread_json(found.captured_ms)},
          {"eager_host_ms", spread_json(found.eager_host_ms)},
          {"captured_host_ms", spread_json(found.captured_host_ms)}};
}

}  // namespace

Spread spread_of(std::vector<double> values) {
  Spread spread;
  spread.count = static_cast<std::int64_t>(values.size());
  if (values.empty()) return spread;
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    const double place = share * static_cast<double>(values.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, values.size() - 1);
    return values[below] + (place - static_cast<double>(below)) * (values[above] - values[below]);
  };
  spread.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  spread.minimum = values.front();
  spread.maximum = values.back();
  spread.quartile1 = at(0.25);
  spread.median = at(0.5);
  spread.quartile3 = at(0.75);
  return spread;
}

std::string to_json(const RunReport& report) {
  const plan::Plan& plan = *report.plan;
  Json out;
  out["version"] = kReportVersion;
  out["program"] = report.program;
  out["status"] = report.status;
  out["mode"] = report.mode;
  out["plan"] = {{"path", report.plan_path},        {"digest", report.plan_digest},
                 {"config_name", plan.config_name}, {"config_digest", plan.config_digest},
                 {"producer", plan.producer},       {"seed", plan.seed}};
  out["device"] = {{"backend", report.device.backend},
                   {"name", report.device.name},
                   {"driver", report.device.driver},
                   {"total_bytes", report.device.total_bytes},
                   {"free_bytes", report.device.free_bytes}};
  out["steps"] = {{"first", report.first_step},
                  {"done", report.steps_done},
                  {"target", report.target_steps},
                  {"tokens_per_step", plan.dims.tokens() * plan.dims.micro_batches},
                  {"nonfinite", report.nonfinite_steps},
                  {"resumed_from", report.resumed_from.empty() ? Json(nullptr) : Json(report.resumed_from)}};
  out["loss"] = report.loss.count == 0 ? Json(nullptr)
                                       : Json{{"count", report.loss.count},
                                              {"first", json_number(report.loss.first)},
                                              {"last", json_number(report.loss.last)},
                                              {"minimum", json_number(report.loss.minimum)},
                                              {"digest", fmt::format("{:016x}", report.loss.digest)}};
  out["speed"] = {
      {"eager", speed_json(report, report.eager_step_ms, report.eager_issue_us)},
      {"captured", speed_json(report, report.captured_step_ms, report.captured_issue_us)},
      {"capture_step_ms", report.capture_step_ms > 0 ? json_number(report.capture_step_ms) : Json(nullptr)}};
  out["memory"] = memory_json(report);
  out["graphs"] = graphs_json(report);
  out["comparison"] = report.comparison ? comparison_json(report) : Json(nullptr);
  if (report.verification) {
    const Verification& found = *report.verification;
    out["verification"] = {
        {"every", found.every},
        {"checked", found.checked},
        {"first_difference", found.first_difference.empty() ? Json(nullptr) : Json(found.first_difference)}};
  } else {
    out["verification"] = nullptr;
  }
  out["checkpoints"] = report.checkpoints;
  Json diagnostics = Json::array();
  for (const Diagnostic& diagnostic : report.diagnostics) {
    diagnostics.push_back({{"code", diagnostic.code},
                           {"name", diagnostic.name},
                           {"severity", severity_name(diagnostic.severity)},
                           {"message", diagnostic.message}});
  }
  out["diagnostics"] = diagnostics;
  out["seconds"] = report.seconds;
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace capstan::runtime
