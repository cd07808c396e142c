#include "runtime/execute/session.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>

#include <fmt/format.h>

#include "runtime/checkpoint/checkpoint.h"
#include "runtime/device/host_backend.h"
#include "runtime/execute/compare.h"
#include "runtime/execute/interrupt.h"
#include "runtime/execute/teardown.h"
#include "runtime/execute/trainer.h"
#include "runtime/report/number_text.h"
#include "runtime/report/run_directory.h"
#include "runtime/report/write_file.h"

namespace capstan::runtime {
namespace {

void print(const Diagnostic& diagnostic) {
  std::string text = fmt::format("{}[{}] {} ({})\n", severity_name(diagnostic.severity), diagnostic.code,
                                 diagnostic.message, diagnostic.name);
  for (const Note& note : diagnostic.notes) text += fmt::format("  = help: {}\n", note.text);
  std::fputs(text.c_str(), stderr);
}

int refuse(const Diagnostic& diagnostic) {
  print(diagnostic);
  return 4;
}

Outcome<std::unique_ptr<Backend>> open_backend(const RunOptions& options, const plan::Plan& plan,
                                               const CudaFactory& cuda) {
  const std::string wanted = options.backend.empty() ? plan.backend : options.backend;
  if (wanted == "cuda" && !cuda) {
    return run_problem("RN021", "the cuda backend is wanted, but this program was built without it", {},
                       "build where a CUDA toolkit is installed, or use `--backend host`");
  }
  if (wanted == "cuda" || (wanted == "auto" && cuda)) {
    Outcome<std::unique_ptr<Backend>> opened = cuda(static_cast<int>(options.device));
    // `auto` means the host where there is no usable GPU, and only there.
    if (opened.ok() || wanted == "cuda" || opened.error().code != "RN021") return opened;
  }
  return make_host_backend(static_cast<unsigned>(options.threads));
}

/// Whether a step reads what the buffer holds before it writes there.
bool is_read_first(const plan::Plan& plan, plan::BufferId buffer) {
  const auto among = [buffer](const std::vector<plan::BufferId>& list) {
    return std::find(list.begin(), list.end(), buffer) != list.end();
  };
  for (const plan::Op& op : plan.ops) {
    if (among(op.inputs)) return true;
    if (among(op.outputs)) return false;
  }
  return false;
}

std::string bytes_text(std::uint64_t bytes) {
  if (bytes >= (1u << 30)) return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1u << 30));
  if (bytes >= (1u << 20)) return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1u << 20));
  return fmt::format("{:.1f} KiB", static_cast<double>(bytes) / 1024);
}

/// Empty where issuing runs the ops.
std::string issue_text(const Spread& issue_us) {
  return issue_us.count == 0 ? "" : fmt::format(", issued in {:.0f} us", issue_us.mean);
}

class Session {
 public:
  Session(const RunOptions& options, const CudaFactory& cuda) : options_(options), cuda_(cuda) {}

  int run(const std::string& program) {
    const auto began = std::chrono::steady_clock::now();
    report_.program = program;
    report_.plan_path = options_.plan_path;
    if (Status ready = prepare(); !ready.ok()) {
      folder_.drop_if_empty();
      return refuse(ready.error());
    }

    Status outcome = work();
    const bool given_up = !outcome.ok() && outcome.error().code == "RN033";
    if (given_up) {
      report_.status = "interrupted";
    } else if (!outcome.ok()) {
      report_.diagnostics.push_back(outcome.error());
      report_.status = outcome.error().code == "RN032" ? "replay_differs" : "failed";
    }
    if (report_.memory.peak == 0) report_.memory = backend_->memory();
    if (Status released =
            tear_down(loaded_->plan, *backend_, std::chrono::seconds(options_.teardown_seconds));
        !released.ok()) {
      report_.diagnostics.push_back(released.error());
      if (report_.status == "finished") report_.status = "failed";
    }
    if (report_.status == "interrupted") report_.diagnostics.push_back(describe_stop(given_up));
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    const Status written = write_file(directory_ + "/report.json", to_json(report_), "RN050");
    if (!written.ok()) {
      report_.diagnostics.push_back(written.error());
      if (report_.status == "finished") report_.status = "failed";
    }
    for (const Diagnostic& diagnostic : report_.diagnostics) print(diagnostic);
    summarize(written.ok());
    return exit_code();
  }

 private:
  /// Everything that is looked at before the device allocates, then the device.
  Status prepare() {
    Outcome<LoadedPlan> loaded = load_plan(options_.plan_path);
    if (!loaded.ok()) return loaded.error();
    loaded_ = std::make_unique<LoadedPlan>(std::move(loaded.value()));
    const plan::Plan& plan = loaded_->plan;
    report_.plan = &plan;
    report_.plan_digest = loaded_->digest;
    report_.mode = options_.compare_eager ? "compare_eager" : options_.eager ? "eager" : "as_planned";
    report_.status = "finished";
    report_.target_steps = options_.steps.value_or(plan.schedule.train_steps);
    if (Status sound = check_mode(plan); !sound.ok()) return sound;

    Outcome<std::unique_ptr<TokenSource>> data = open_data(plan);
    if (!data.ok()) return data.error();
    data_ = std::move(data.value());
    identity_ = data_->identity();

    std::string checkpoint;
    if (!options_.resume.empty()) {
      const Outcome<std::string> found = find_checkpoint(options_.resume);
      if (!found.ok()) return found.error();
      checkpoint = found.value();
      Outcome<Resumed> sound = check_checkpoint(checkpoint, *loaded_, identity_);
      if (!sound.ok()) return sound.error();
      report_.first_step = static_cast<std::int64_t>(sound.value().step);
    }
    if (Status sound = check_steps(plan); !sound.ok()) return sound;
    Outcome<std::unique_ptr<Backend>> backend = open_backend(options_, plan, cuda_);
    if (!backend.ok()) return backend.error();
    backend_ = std::move(backend.value());
    report_.device = backend_->device();
    const bool on_host = report_.device.backend == "host";
    for (const std::string& option : on_host ? options_.for_cuda : options_.for_host) {
      std::fputs(
          fmt::format("capstan-run: `{}` has no effect on the {} backend\n", option, report_.device.backend)
              .c_str(),
          stderr);
    }
    Outcome<RunDirectory> folder =
        make_run_directory({options_.output, plan.config_name, options_.resume, options_.overwrite});
    if (!folder.ok()) return folder.error();
    folder_ = std::move(folder.value());
    directory_ = folder_.path();

    if (Status prepared = backend_->prepare(plan); !prepared.ok()) return prepared;
    if (Status filled = backend_->initialize(); !filled.ok()) return filled;
    if (!checkpoint.empty()) {
      const Outcome<Resumed> resumed = load_checkpoint(checkpoint, *loaded_, identity_, *backend_);
      if (!resumed.ok()) return resumed.error();
      report_.first_step = static_cast<std::int64_t>(resumed.value().step);
      report_.resumed_from = resumed.value().path;
    }
    if (options_.overwrite && !resumes_from(directory_, options_.resume)) {
      if (Status cleared = folder_.clear(); !cleared.ok()) return cleared;
    }
    // The run can be looked at and repeated from its directory alone.
    if (Status kept = write_file(directory_ + "/plan.json", loaded_->text, "RN050"); !kept.ok()) return kept;
    loaded_->text = {};
    report_.steps_done = report_.first_step;
    if (options_.verify_every > 0) report_.verification.emplace().every = options_.verify_every;
    if (!options_.quiet) {
      std::fputs(fmt::format("{} on {} ({}): {} ops, {} segments, arena {}, run directory {}\n",
                             plan.config_name, report_.device.name, report_.device.backend, plan.ops.size(),
                             plan.segments.size(), bytes_text(plan.memory.arena), directory_)
                     .c_str(),
                 stderr);
    }
    return {};
  }

  Status check_mode(const plan::Plan& plan) const {
    const bool captures = std::any_of(plan.segments.begin(), plan.segments.end(), [](const plan::Segment& s) {
      return s.mode == plan::SegmentMode::graph;
    });
    if ((options_.compare_eager || options_.verify_every > 0 || options_.export_graphs) && !captures) {
      return run_problem("RN035", "the plan captures nothing, so there is no replay to look at", {},
                         "set `model.cuda_graph_impl` and compile again");
    }
    if (options_.drill.kind == Drill::Kind::flip && plan.find_buffer(options_.drill.buffer) == nullptr) {
      return run_problem("RN036",
                         fmt::format("`--inject` names the buffer `{}`, which the plan does not have",
                                     options_.drill.buffer));
    }
    if (options_.drill.kind == Drill::Kind::flip &&
        !is_read_first(plan, plan.buffer(options_.drill.buffer).id)) {
      return run_problem(
          "RN036",
          fmt::format("`--inject` names the buffer `{}`, which a step overwrites before it reads it: "
                      "nothing of a changed bit could be seen",
                      options_.drill.buffer),
          {}, "name a buffer whose contents a step begins with: `rng_counter`, a parameter or a moment");
    }
    const auto holds_the_op = [&](const plan::Segment& segment) {
      return segment.mode == plan::SegmentMode::graph && segment.first_op <= options_.drill.op &&
             options_.drill.op < segment.end_op;
    };
    if (options_.drill.kind == Drill::Kind::fault &&
        std::none_of(plan.segments.begin(), plan.segments.end(), holds_the_op)) {
      return run_problem("RN036",
                         fmt::format("`--inject` names op {}, which no captured segment of the plan holds",
                                     options_.drill.op));
    }
    return {};
  }

  /// What is asked about steps must be about steps of this run. Steps are numbered from 1.
  Status check_steps(const plan::Plan& plan) const {
    const std::int64_t first = report_.first_step, end = report_.target_steps;
    if (first >= end) return {};  // nothing to do, which is said
    if (options_.drill.kind == Drill::Kind::nan) {
      const auto step = static_cast<std::int64_t>(options_.drill.step);
      if (step <= first || step > end) {
        return run_problem("RN036",
                           fmt::format("`--inject nan:{}` names a step that the run does not do: it does {} "
                                       "to {}",
                                       step, first + 1, end));
      }
    }
    if (options_.verify_every == 0) return {};
    // Steps of the warm-up are not replayed.
    const std::int64_t first_captured = first + plan.schedule.warmup_steps + 1;
    const std::int64_t first_verified =
        (first_captured + options_.verify_every - 1) / options_.verify_every * options_.verify_every;
    if (first_captured <= end && first_verified <= end) return {};
    return run_problem(
        "RN035",
        first_captured > end
            ? fmt::format("the run ends at step {}, and replays from step {} on: there is nothing to verify",
                          end, first_captured)
            : fmt::format("`--verify-replay {}` would verify step {} first, but the run ends at step {}",
                          options_.verify_every, first_verified, end),
        {}, "give more `--steps`, or verify more often");
  }

  Status work() {
    Executor executor(loaded_->plan, *backend_);
    if (options_.drill.kind == Drill::Kind::fault)
      executor.fail_at_capture(static_cast<plan::OpId>(options_.drill.op));
    const Sampler sampler(loaded_->plan, *data_);
    Run run{*loaded_, options_, *backend_, executor, sampler, identity_, directory_, report_};
    if (Status worked = options_.compare_eager ? compare_with_eager(run) : train(run); !worked.ok())
      return worked;
    return options_.export_graphs ? export_graphs() : Status();
  }

  Status export_graphs() const {
    const plan::Plan& plan = loaded_->plan;
    std::error_code error;
    std::filesystem::create_directories(directory_ + "/graphs", error);
    for (const CapturedSegment& captured : report_.captures) {
      const plan::Segment& segment = plan.segments[captured.segment];
      std::vector<plan::OpId> order;
      for (const OpIssue& each : segment_order(plan, segment)) order.push_back(each.op);
      const std::string stem = fmt::format("{}/graphs/segment-{}", directory_, segment.id);
      const GraphListing& listing = captured.info.listing;
      if (Status dot = write_file(stem + ".dot", to_dot(plan, segment, order, listing), "RN050"); !dot.ok())
        return dot;
      if (Status text = write_file(stem + ".json", to_json(plan, segment, order, listing), "RN050");
          !text.ok())
        return text;
    }
    return {};
  }

  /// `given_up`: in the middle of a step, whose state is no state to save.
  Diagnostic describe_stop(bool given_up) const {
    const Arguments arguments = {{"signal", requested_signal()}, {"step", report_.steps_done}};
    if (!given_up) {
      return run_problem(
          "RN033",
          fmt::format("signal {} stopped the run after step {}", requested_signal(), report_.steps_done),
          arguments, report_.checkpoints.empty() ? "" : fmt::format("go on with `--resume {}`", directory_));
    }
    const std::string last = report_.checkpoints.empty() ? report_.resumed_from : report_.checkpoints.back();
    return run_problem(
        "RN033",
        fmt::format(
            "signal {} stopped the run in the middle of step {}, which took too long to wait for: "
            "that step is given up, and nothing is saved of it; {}",
            requested_signal(), report_.steps_done + 1,
            last.empty() ? "there is no checkpoint" : fmt::format("the last checkpoint is `{}`", last)),
        arguments, last.empty() ? "" : fmt::format("go on with `--resume {}`", last));
  }

  int exit_code() const {
    if (report_.status == "failed") return 4;
    if (report_.status == "replay_differs") return 5;
    if (report_.status == "interrupted") return 128 + requested_signal();
    return 0;
  }

  void summarize(bool report_written) const {
    std::string text;
    if (report_.loss.count > 0) {
      text +=
          fmt::format("{} steps, loss {} -> {}\n", report_.steps_done - report_.first_step,
                      number_text(report_.loss.first, "{:.4f}"), number_text(report_.loss.last, "{:.4f}"));
    }
    if (report_.eager_step_ms.count > 0)
      text += fmt::format("eager step {:.2f} ms (median of {}){}\n", report_.eager_step_ms.median,
                          report_.eager_step_ms.count, issue_text(report_.eager_issue_us));
    if (report_.captured_step_ms.count > 0) {
      text += fmt::format("replayed step {:.2f} ms (median of {}){}, capture {:.3f} s for {} segments\n",
                          report_.captured_step_ms.median, report_.captured_step_ms.count,
                          issue_text(report_.captured_issue_us), report_.capture_seconds,
                          report_.captures.size());
    }
    if (report_.comparison) text += report_.comparison->verdict + "\n";
    if (report_.verification) {
      text += fmt::format(
          "replay verified on {} steps: {}\n", report_.verification->checked,
          report_.verification->first_difference.empty() ? "equal to eager, bit for bit" : "differs");
    }
    text += fmt::format("memory planned {}, measured peak {}\n", bytes_text(loaded_->plan.memory.arena),
                        bytes_text(report_.memory.peak));
    text += report_written ? fmt::format("{}: {}/report.json\n", report_.status, directory_)
                           : fmt::format("{}, without a report\n", report_.status);
    std::fputs(text.c_str(), stdout);
  }

  const RunOptions& options_;
  const CudaFactory& cuda_;
  std::unique_ptr<LoadedPlan> loaded_;
  std::unique_ptr<TokenSource> data_;
  DataIdentity identity_;
  std::unique_ptr<Backend> backend_;
  RunDirectory folder_;
  std::string directory_;
  RunReport report_;
};

}  // namespace

int run_session(const RunOptions& options, const CudaFactory& cuda, const std::string& program) {
  return Session(options, cuda).run(program);
}

}  // namespace capstan::runtime
