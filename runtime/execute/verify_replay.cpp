#include "runtime/execute/verify_replay.h"

#include <fmt/format.h>

namespace capstan::runtime {
namespace {

Diagnostic differs(Run& run, const std::string& what) {
  run.report.verification->first_difference = what;
  return run_problem(
      "RN032",
      fmt::format("replay and eager execution of step {} differ: {}", run.report.steps_done + 1, what),
      {{"step", run.report.steps_done + 1}},
      "run with `--eager` until the cause is found; the checkpoints before this step hold what was computed "
      "then");
}

/// Drill: the lowest bit of the buffer's first byte.
Status flip_bit(Run& run) {
  const plan::Buffer* buffer = run.plan().find_buffer(run.options.drill.buffer);
  if (buffer == nullptr) {
    return run_problem("RN036", fmt::format("`--inject` names the buffer `{}`, which the plan does not have",
                                            run.options.drill.buffer));
  }
  std::vector<std::byte> bytes(buffer->bytes());
  if (Status read = run.backend.download(buffer->id, bytes); !read.ok()) return read;
  bytes[0] ^= std::byte{1};
  return run.backend.upload(buffer->id, bytes);
}

}  // namespace

Status verify_step(Run& run) {
  run.report.verification->checked += 1;
  const plan::Plan& plan = run.plan();
  const Outcome<StateSnapshot> before = StateSnapshot::take(plan, run.backend);
  if (!before.ok()) return before.error();

  const Outcome<std::vector<Executor::Digest>> eager = run.executor.run_with_digests(false);
  if (!eager.ok()) return eager.error();
  const Outcome<StateSnapshot> after_eager = StateSnapshot::take(plan, run.backend);
  if (!after_eager.ok()) return after_eager.error();

  if (Status restored = before.value().restore(run.backend); !restored.ok()) return restored;
  if (run.options.drill.kind == Drill::Kind::flip) {
    if (Status flipped = flip_bit(run); !flipped.ok()) return flipped;
  }
  const Outcome<std::vector<Executor::Digest>> replayed = run.executor.run_with_digests(true);
  if (!replayed.ok()) return replayed.error();
  for (std::size_t i = 0; i < eager.value().size(); ++i) {
    const Executor::Digest& one = eager.value()[i];
    if (one.value == replayed.value()[i].value) continue;
    const std::string micro_batch =
        one.micro_batch < 0 ? "" : fmt::format(", micro-batch {}", one.micro_batch);
    return differs(run, fmt::format("the outputs of {}, segment {}{}, are the first",
                                    describe_op(plan, one.op.op), one.segment, micro_batch));
  }

  if (Status restored = before.value().restore(run.backend); !restored.ok()) return restored;
  if (Status issued = run.executor.run_captured(); !issued.ok()) return issued;
  const Outcome<StateSnapshot> after_replay = StateSnapshot::take(plan, run.backend);
  if (!after_replay.ok()) return after_replay.error();
  if (const auto buffer = after_eager.value().find_difference(after_replay.value())) {
    return differs(run, fmt::format("the buffer `{}` after the step; the recordings with digests agree",
                                    plan.buffers[*buffer].name));
  }
  if (run.options.drill.kind == Drill::Kind::flip) {
    return run_problem(
        "RN036",
        fmt::format("`--inject` changed a bit of the buffer `{}`, and no op of step {} computed anything "
                    "else for it: the drill shows nothing",
                    run.options.drill.buffer, run.report.steps_done + 1),
        {{"step", run.report.steps_done + 1}}, "name another buffer, such as `rng_counter`");
  }
  return {};
}

}  // namespace capstan::runtime
