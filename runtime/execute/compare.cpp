#include "runtime/execute/compare.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "runtime/execute/interrupt.h"

namespace capstan::runtime {
namespace {

struct TimedStep {
  double device_ms = 0, host_ms = 0;
  StepScalars scalars;
};

Outcome<TimedStep> time_step(Run& run, bool captured) {
  if (Status idle = run.backend.synchronize(); !idle.ok()) return idle.error();
  if (Status started = run.backend.start_timer(); !started.ok()) return started.error();
  const auto began = std::chrono::steady_clock::now();
  if (Status issued = captured ? run.executor.run_captured() : run.executor.run_eager(); !issued.ok())
    return issued.error();
  TimedStep timed;
  timed.host_ms = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count() * 1000.0;
  const Outcome<double> device = run.backend.stop_timer();
  if (!device.ok()) return device.error();
  timed.device_ms = device.value() * 1000.0;
  const Outcome<StepScalars> scalars = read_scalars(run.plan(), run.backend);
  if (!scalars.ok()) return scalars.error();
  timed.scalars = scalars.value();
  return timed;
}

/// Warm-up as in training, then the capture step and two replays that are not timed.
Status warm_up(Run& run, std::vector<std::int32_t>& batch) {
  RunReport& report = run.report;
  for (std::int64_t i = 0; i < run.plan().schedule.warmup_steps + 3; ++i) {
    const bool captured = i >= run.plan().schedule.warmup_steps;
    if (captured && !run.executor.captured()) report.memory_before_capture = run.backend.memory();
    if (Status staged = stage_batch(run, report.steps_done, batch); !staged.ok()) return staged;
    if (Status issued = captured ? run.executor.run_captured() : run.executor.run_eager(); !issued.ok())
      return issued;
    if (Status idle = run.backend.synchronize(); !idle.ok()) return idle;
    report.steps_done += 1;
    if (requested_signal() != 0) break;
  }
  report.captures = run.executor.captures();
  report.capture_seconds = run.executor.capture_seconds();
  return {};
}

bool same_bits(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b);
}

}  // namespace

std::string speed_verdict(const Spread& eager_ms, const Spread& captured_ms) {
  const double saved = eager_ms.median - captured_ms.median;
  const double percent = eager_ms.median > 0 ? 100.0 * saved / eager_ms.median : 0.0;
  const std::string times =
      fmt::format("{:.3f} ms eager, {:.3f} ms replayed", eager_ms.median, captured_ms.median);
  // Half the middle half of the slower-varying run, or one percent: below that a difference is noise.
  const double noise =
      std::max({(eager_ms.quartile3 - eager_ms.quartile1) / 2,
                (captured_ms.quartile3 - captured_ms.quartile1) / 2, 0.01 * eager_ms.median});
  if (saved > noise) return fmt::format("replay is {:.1f} % faster here: {}", percent, times);
  if (-saved > noise)
    return fmt::format("replay is not faster here, it is {:.1f} % slower: {}", -percent, times);
  return fmt::format("replay is not faster here, the difference is within the spread: {}", times);
}

Status compare_with_eager(Run& run) {
  const plan::Plan& plan = run.plan();
  RunReport& report = run.report;
  std::vector<std::int32_t> batch;
  if (Status warm = warm_up(run, batch); !warm.ok()) return warm;

  Comparison result;
  result.loss_match = true;
  std::vector<double> eager_ms, captured_ms, eager_host, captured_host;
  for (std::int64_t round = 0; round < run.options.rounds && requested_signal() == 0; ++round) {
    if (Status staged = stage_batch(run, report.steps_done, batch); !staged.ok()) return staged;
    const Outcome<StateSnapshot> before = StateSnapshot::take(plan, run.backend);
    if (!before.ok()) return before.error();
    const bool captured_first = round % 2 == 0;
    const Outcome<TimedStep> first = time_step(run, captured_first);
    if (!first.ok()) return first.error();
    if (Status restored = before.value().restore(run.backend); !restored.ok()) return restored;
    const Outcome<TimedStep> second = time_step(run, !captured_first);
    if (!second.ok()) return second.error();
    const TimedStep &captured = captured_first ? first.value() : second.value(),
                    &eager = captured_first ? second.value() : first.value();
    captured_ms.push_back(captured.device_ms);
    captured_host.push_back(captured.host_ms);
    eager_ms.push_back(eager.device_ms);
    eager_host.push_back(eager.host_ms);
    result.loss_match = result.loss_match && same_bits(eager.scalars.loss, captured.scalars.loss) &&
                        same_bits(eager.scalars.grad_norm, captured.scalars.grad_norm);
    result.loss_max_delta =
        std::max(result.loss_max_delta, std::fabs(eager.scalars.loss - captured.scalars.loss));
    report.steps_done += 1;
  }
  report.memory = run.backend.memory();
  if (requested_signal() != 0) report.status = "interrupted";
  if (eager_ms.empty()) return {};  // stopped before the first round: nothing was compared
  result.eager_ms = spread_of(eager_ms);
  result.captured_ms = spread_of(captured_ms);
  result.eager_host_ms = spread_of(eager_host);
  result.captured_host_ms = spread_of(captured_host);
  result.memory_delta = static_cast<std::int64_t>(report.memory.peak) -
                        static_cast<std::int64_t>(report.memory_before_capture.peak);
  if (result.eager_ms.median > 0) {
    result.speedup_percent =
        100.0 * (result.eager_ms.median - result.captured_ms.median) / result.eager_ms.median;
  }
  if (result.loss_match) {
    result.verdict = speed_verdict(result.eager_ms, result.captured_ms);
  } else {
    report.status = "replay_differs";
    result.verdict =
        fmt::format("replay computes something else than eager execution: losses differ by up to {:.3g}",
                    result.loss_max_delta);
  }
  report.comparison = std::move(result);
  return {};
}

}  // namespace capstan::runtime
