#include "runtime/report/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include <fmt/format.h>

#include "runtime/report/number_text.h"

namespace capstan::runtime {
namespace {

std::string duration_text(double seconds) {
  const auto whole = static_cast<std::int64_t>(std::llround(std::max(seconds, 0.0)));
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}

std::string count_text(double value) {
  if (value >= 1e6) return fmt::format("{:.2f}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:.1f}k", value / 1e3);
  return fmt::format("{:.0f}", value);
}

}  // namespace

Progress::Progress(bool quiet, std::int64_t first_step, std::int64_t target_steps)
    : quiet_(quiet),
      terminal_(isatty(STDERR_FILENO) != 0),
      first_step_(first_step),
      target_steps_(target_steps),
      began_(Clock::now()) {}

Progress::~Progress() {
  finish_line();
}

void Progress::show(const StepMetrics& metrics) {
  if (quiet_) return;
  const auto now = Clock::now();
  const bool last = metrics.step >= target_steps_, first = metrics.step == first_step_ + 1;
  const auto pause = std::chrono::duration<double>(now - shown_).count();
  const std::int64_t stride = std::max<std::int64_t>(1, (target_steps_ - first_step_) / 20);
  const bool due = terminal_ ? pause > 0.1 : pause > 10.0 || metrics.step - shown_step_ >= stride;
  if (!first && !last && !due) return;
  shown_ = now;
  shown_step_ = metrics.step;
  const double elapsed = std::chrono::duration<double>(now - began_).count();
  const auto done = static_cast<double>(metrics.step - first_step_);
  const double left = elapsed / std::max(done, 1.0) * static_cast<double>(target_steps_ - metrics.step);
  const std::string line =
      fmt::format("step {}/{}  loss {}  lr {:.2e}  grad norm {}  {} tokens/s  {:.1f} ms  {}  left {}",
                  metrics.step, target_steps_, number_text(metrics.loss, "{:.4f}"), metrics.learning_rate,
                  number_text(metrics.grad_norm, "{:.3f}"), count_text(metrics.tokens_per_s), metrics.step_ms,
                  metrics.mode, duration_text(left));
  std::fputs(terminal_ ? ("\r\x1b[K" + line).c_str() : (line + "\n").c_str(), stderr);
  std::fflush(stderr);
  open_line_ = terminal_;
}

void Progress::finish_line() {
  if (!open_line_) return;
  std::fputs("\n", stderr);
  open_line_ = false;
}

}  // namespace capstan::runtime
