#include "runtime/execute/trainer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <deque>

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device/digest.h"
#include "runtime/execute/interrupt.h"
#include "runtime/execute/verify_replay.h"
#include "runtime/report/metrics.h"
#include "runtime/report/number_text.h"
#include "runtime/report/progress.h"

namespace capstan::runtime {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::duration time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

/// A failed check and a signal are heeded once what was issued is done: this long after them, or two steps.
constexpr double kMostAheadMs = 1000;
/// What is issued ahead fits the device's queue (about a thousand launches): a full one makes the host wait
/// in the middle of a step, and see the end of those before it late.
constexpr double kMostAheadLaunches = 512;

/// Times of the last steps are enough for a median; a run of any length keeps no more.
constexpr std::size_t kTimesKept = 10000;

void note_time(std::vector<double>& times, double value) {
  if (times.size() == kTimesKept) times.erase(times.begin(), times.begin() + kTimesKept / 2);
  times.push_back(value);
}

void note_loss(LossSummary& summary, double loss) {
  if (summary.count == 0) summary.first = summary.minimum = loss;
  summary.last = loss;
  if (loss < summary.minimum || std::isnan(summary.minimum)) summary.minimum = loss;
  const auto bits = std::bit_cast<std::uint64_t>(loss);
  const auto place = static_cast<std::uint64_t>(2 * summary.count);
  summary.digest += mix_digest_word(place, static_cast<std::uint32_t>(bits));
  summary.digest += mix_digest_word(place + 1, static_cast<std::uint32_t>(bits >> 32));
  ++summary.count;
}

/// The first check of the plan that fired.
Status make_checks(const plan::Plan& plan, const StepScalars& scalars) {
  for (const plan::Check& check : plan.checks) {
    const bool of_loss = check.kind == "nonfinite_loss";
    if ((scalars.nonfinite & (of_loss ? 1 : 2)) == 0 || !check.fatal) continue;
    const std::string what =
        of_loss
            ? fmt::format("the loss of step {} is {}", scalars.step, number_text(scalars.loss))
            : fmt::format("the gradient norm of step {} is {}", scalars.step, number_text(scalars.grad_norm));
    return run_problem(of_loss ? "RN030" : "RN031", what + fmt::format(", and `{}` asks to stop", check.key),
                       {{"step", scalars.step}, {"key", check.key}},
                       "that step changed no parameter, and nothing was saved after it; look at the data and "
                       "the learning rate before it, then resume from the last checkpoint");
  }
  return {};
}

/// Drill: every element of the smallest parameter becomes NaN, so that nothing can miss it.
Status inject_nan(const plan::Plan& plan, Backend& backend) {
  const plan::Buffer* smallest = nullptr;
  for (const plan::Buffer& buffer : plan.buffers) {
    if (buffer.role != plan::Role::parameter) continue;
    if (smallest == nullptr || buffer.elements() < smallest->elements()) smallest = &buffer;
  }
  if (smallest == nullptr) return {};
  // All bits set is a NaN in every floating-point type.
  const std::vector<std::byte> bytes(smallest->bytes(), std::byte{0xff});
  return backend.upload(smallest->id, bytes);
}

class Trainer {
 public:
  explicit Trainer(Run& run)
      : run_(run),
        progress_(run.options.quiet, run.report.first_step, run.report.target_steps),
        scalars_(run.plan(), run.backend),
        issued_(run.report.steps_done) {}

  Status work() {
    RunReport& report = run_.report;
    if (Status opened = metrics_.open(run_.directory + "/metrics.jsonl", report.first_step); !opened.ok())
      return opened;
    if (!report.resumed_from.empty() && report.first_step >= report.target_steps) {
      report.diagnostics.push_back(run_problem(
          "RN038",
          fmt::format("the checkpoint stands at step {}, and the run ends at step {}: nothing to do",
                      report.first_step, report.target_steps),
          {{"step", report.first_step}}, "give more `--steps` to train on"));
      saved_step_ = report.steps_done;
    }
    Status outcome = do_steps();
    progress_.finish_line();
    if (outcome.ok() && requested_signal() != 0 && report.steps_done < report.target_steps)
      report.status = "interrupted";
    if (outcome.ok() && saved_step_ != report.steps_done) outcome = save();
    report.eager_step_ms = spread_of(eager_ms_);
    report.captured_step_ms = spread_of(captured_ms_);
    report.eager_issue_us = spread_of(eager_issue_us_);
    report.captured_issue_us = spread_of(captured_issue_us_);
    report.memory = run_.backend.memory();
    return outcome;
  }

 private:
  /// A step that was issued, or is to be.
  struct Step {
    std::int64_t number = 0;  ///< steps done before it
    bool captures = false, first_capture = false, verifies = false;
    Clock::time_point began;
    double issue_us = 0;

    /// Issued and nothing else: another may be issued behind it, or it behind another.
    bool is_plain() const { return !first_capture && !verifies; }
    std::size_t slot() const { return static_cast<std::size_t>(number) % Backend::kReadSlots; }
  };

  Step next_step() const {
    Step step;
    step.number = issued_;
    const bool warm = issued_ - run_.report.first_step >= run_.plan().schedule.warmup_steps;
    step.captures = !run_.options.eager && run_.executor.has_graphs() && warm;
    step.first_capture = step.captures && !run_.executor.captured();
    step.verifies =
        step.captures && run_.options.verify_every > 0 && (issued_ + 1) % run_.options.verify_every == 0;
    return step;
  }

  bool saves_after(std::int64_t steps) const {
    const std::int64_t every = run_.plan().schedule.save_every;
    return every > 0 && steps % every == 0;
  }

  /// How many steps may be issued and not read yet, where a step takes as long as the last one.
  std::size_t most_in_flight() const {
    if (!run_.backend.device().asynchronous) return 1;
    if (run_.options.steps_ahead > 0) return static_cast<std::size_t>(run_.options.steps_ahead);
    if (last_step_ms_ <= 0) return 2;
    const auto launches = static_cast<double>(run_.executor.launches(next_step().captures));
    return static_cast<std::size_t>(
        std::clamp(std::min(kMostAheadMs / last_step_ms_, kMostAheadLaunches / launches), 2.0,
                   static_cast<double>(Backend::kReadSlots)));
  }

  /// Whether the next step may be issued now. Behind a step whose scalars were not read yet only where the
  /// device works on its own, and where nothing needs the state as it is between the two.
  bool may_issue() const {
    if (issued_ >= run_.report.target_steps || requested_signal() != 0) return false;
    if (in_flight_.empty()) return true;
    return in_flight_.size() < most_in_flight() && in_flight_.back().is_plain() && next_step().is_plain() &&
           !saves_after(issued_);
  }

  /// Issues steps before the scalars of those before them are read, so that the device has its next work when
  /// it is done with a step: issuing to a busy device is also cheaper. Several in a row, when half of what
  /// may be in flight is done: the first after a while finds little of the driver in the processor's caches,
  /// those right behind it take a third of its time.
  Status do_steps() {
    while (true) {
      const bool refills = in_flight_.size() <= most_in_flight() / 2;
      while (refills && may_issue()) {
        Status issued = issue_step();
        if (issued.ok()) continue;
        // The step before it is a step done, unless it has a failure of its own to tell.
        while (!in_flight_.empty()) {
          if (Status earlier = finish_step(); !earlier.ok()) return earlier;
        }
        return issued;
      }
      if (in_flight_.empty()) return {};
      if (Status finished = finish_step(); !finished.ok()) return finished;
      if (!in_flight_.empty() || !saves_after(run_.report.steps_done)) continue;
      if (Status saved = save(); !saved.ok()) return saved;
    }
  }

  Status issue_step() {
    Step step = next_step();
    if (step.first_capture) run_.report.memory_before_capture = run_.backend.memory();
    if (run_.options.drill.kind == Drill::Kind::nan &&
        run_.options.drill.step == static_cast<std::uint64_t>(step.number) + 1) {
      if (Status injected = inject_nan(run_.plan(), run_.backend); !injected.ok()) return injected;
    }
    step.began = Clock::now();
    if (Status staged = stage_batch(run_, step.number, batch_); !staged.ok()) return staged;
    const auto staged_at = Clock::now();
    if (step.verifies) {
      if (Status same = verify_step(run_); !same.ok()) return same;
    } else if (Status issued = step.captures ? run_.executor.run_captured() : run_.executor.run_eager();
               !issued.ok()) {
      return issued;
    }
    step.issue_us = milliseconds(Clock::now() - staged_at) * 1000.0;
    if (Status begun = scalars_.begin(step.slot()); !begun.ok()) return begun;
    in_flight_.push_back(step);
    ++issued_;
    return {};
  }

  /// Waits for the oldest step in flight, and makes of its scalars what is made of them.
  Status finish_step() {
    RunReport& report = run_.report;
    const Step step = in_flight_.front();
    in_flight_.pop_front();
    const Outcome<StepScalars> scalars = scalars_.await(step.slot());
    if (!scalars.ok()) {
      in_flight_.clear();
      return scalars.error();
    }
    // Behind another step the device began with this one when it was done with that.
    const auto done = Clock::now();
    const double step_ms = milliseconds(done - std::max(step.began, last_done_));
    last_done_ = done;
    if (step.is_plain()) last_step_ms_ = step_ms;

    if (step.first_capture) {
      report.captures = run_.executor.captures();
      report.capture_seconds = run_.executor.capture_seconds();
      report.capture_step_ms = step_ms;
    } else if (!step.verifies) {
      note_time(step.captures ? captured_ms_ : eager_ms_, step_ms);
      // Where issuing runs the ops it has no time of its own.
      if (run_.backend.device().asynchronous)
        note_time(step.captures ? captured_issue_us_ : eager_issue_us_, step.issue_us);
    }
    report.steps_done = step.number + 1;
    note_loss(report.loss, scalars.value().loss);
    Status checked = make_checks(run_.plan(), scalars.value());
    if (scalars.value().nonfinite != 0 && report.nonfinite_steps++ == 0 && checked.ok())
      note_nonfinite(scalars.value());

    StepMetrics metrics;
    metrics.step = report.steps_done;
    metrics.loss = scalars.value().loss;
    metrics.learning_rate = scalars.value().learning_rate;
    metrics.grad_norm = scalars.value().grad_norm;
    metrics.step_ms = step_ms;
    metrics.tokens_per_s =
        static_cast<double>(run_.plan().dims.tokens() * run_.plan().dims.micro_batches) * 1000.0 / step_ms;
    metrics.mode = !step.captures       ? "eager"
                   : step.first_capture ? "capture"
                   : step.verifies      ? "verify"
                                        : "replay";
    const std::int64_t log_every = std::max<std::int64_t>(1, run_.plan().schedule.log_every);
    if (report.steps_done % log_every == 0 || report.steps_done == report.target_steps) {
      if (Status written = metrics_.append(metrics); !written.ok()) return written;
    }
    progress_.show(metrics);
    if (!checked.ok() && !in_flight_.empty()) {
      // What was issued behind it is no step of this run: neither counted nor saved, whatever became of it.
      in_flight_.clear();
      static_cast<void>(run_.backend.synchronize());
    }
    return checked;
  }

  /// The first step that is not finite is worth a word, also where no check of the config stops the run.
  void note_nonfinite(const StepScalars& scalars) {
    const bool of_loss = (scalars.nonfinite & 1) != 0;
    run_.report.diagnostics.push_back(run_problem(
        "RN037",
        fmt::format("the {} of step {} is {}, and no check asks to stop; such a step changes no parameter",
                    of_loss ? "loss" : "gradient norm", scalars.step,
                    number_text(of_loss ? scalars.loss : scalars.grad_norm)),
        {{"step", scalars.step}},
        fmt::format("look at the data and the learning rate before it; `{} = true` stops such runs",
                    of_loss ? "rerun_state_machine.check_for_nan_in_loss" : "ddp.check_for_nan_in_grad")));
  }

  Status save() {
    const auto step = static_cast<std::uint64_t>(run_.report.steps_done);
    const std::string path = checkpoint_path(run_.directory + "/checkpoints", step);
    progress_.finish_line();
    if (Status saved = save_checkpoint(path, run_.loaded, run_.data, run_.backend, step); !saved.ok())
      return saved;
    run_.report.checkpoints.push_back(path);
    saved_step_ = run_.report.steps_done;
    return {};
  }

  Run& run_;
  Progress progress_;
  MetricsFile metrics_;
  std::vector<std::int32_t> batch_;
  ScalarReader scalars_;
  std::deque<Step> in_flight_;   ///< issued, oldest first; their scalars were not read yet
  std::int64_t issued_;          ///< steps, those done before the run included
  Clock::time_point last_done_;  ///< when the last step was seen to be done
  double last_step_ms_ = 0;
  std::vector<double> eager_ms_, captured_ms_, eager_issue_us_, captured_issue_us_;
  std::int64_t saved_step_ = -1;
};

}  // namespace

Status stage_batch(Run& run, std::int64_t step, std::vector<std::int32_t>& batch) {
  const plan::Buffer& buffer = run.plan().buffer(plan::names::kBatchTokens);
  batch.resize(static_cast<std::size_t>(buffer.elements()));
  if (Status filled = run.sampler.fill(static_cast<std::uint64_t>(step), batch); !filled.ok()) return filled;
  return run.backend.upload(buffer.id, std::as_bytes(std::span(batch)));
}

Status train(Run& run) {
  return Trainer(run).work();
}

}  // namespace capstan::runtime
